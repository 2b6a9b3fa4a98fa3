"""What the deployment files start, read from them, and started here as plain processes."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from support.program import PROGRAM, kill_tree

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "onboard"
GPUS_WITHOUT_KEDA = "workers: {gpu: {classes: [{name: gpu-large, maxReplicas: 8}]}}"
_VARIABLE = re.compile(r"\$\{(\w+):?-?([^}]*)\}")
_UNITS = {"s": 1, "m": 60}


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with what follows them, in order."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in joined.splitlines() if line.strip()]


def last_of(instruction: str) -> str:
    """What the final image has for an instruction."""
    return [rest for name, rest in dockerfile() if name == instruction][-1]


def image_environment() -> dict[str, str]:
    """What ENV sets, but for PATH."""
    variables = dict(re.findall(r'(\w+)=("[^"]*"|\S+)', last_of("ENV")))
    return {name: value.strip('"') for name, value in variables.items() if name != "PATH"}


def health_command() -> list[str]:
    """What HEALTHCHECK runs."""
    command: list[str] = json.loads(last_of("HEALTHCHECK").partition("CMD ")[2])
    return command


def compose() -> dict[str, Any]:
    """The compose file with its variables at their defaults; `$$` is a `$` that is none of Compose's."""
    text = (ROOT / "docker-compose.yml").read_text()
    document: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda variable: variable[2], text).replace("$$", "$"))
    return document


def documented(begin: str) -> str:
    """The indented block of docs/how-to/deploy.md whose first line begins like this, without its indent."""
    lines = (ROOT / "docs" / "how-to" / "deploy.md").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith(begin))
    indent = " " * (len(lines[first]) - len(lines[first].lstrip()))
    block = itertools.takewhile(lambda line: line.startswith(indent), lines[first:])
    return "".join(line.removeprefix(indent) + "\n" for line in block)


def make_secrets(folder: Path) -> Path:
    """The folder of secrets that the documented commands make."""
    subprocess.run(["sh", "-ec", documented("mkdir -m 700 secrets")], cwd=folder, check=True)
    return folder / "secrets"


def helm(*words: str, values: str = "") -> subprocess.CompletedProcess[str]:
    """Run Helm with these values on its standard input. Without Helm: skip on a laptop, fail in CI."""
    program = shutil.which("helm", path=f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    if program is None and os.environ.get("CI") == "true":
        pytest.fail("helm is not installed, and CI=true")
    if program is None:
        pytest.skip("helm is not installed (.venv/bin/python .ci/helm)", allow_module_level=True)
    return subprocess.run([program, *words], input=values, capture_output=True, text=True, check=False)


@functools.cache
def chart(values: str = "") -> dict[str, dict[str, Any]]:
    """The objects of a release `onboard` with these values, by kind and name: `Deployment/onboard-api`."""
    done = helm("template", "onboard", str(CHART), "--namespace", "onboard", "--values", "-", values=values)
    assert done.returncode == 0, done.stderr
    objects = list(yaml.safe_load_all(done.stdout))
    by_name = {f"{each['kind']}/{each['metadata']['name']}": each for each in objects}
    assert len(by_name) == len(objects)
    return by_name


def chart_of(kind: str, values: str = "") -> dict[str, dict[str, Any]]:
    """The objects of one kind."""
    return {name: document for name, document in chart(values).items() if document["kind"] == kind}


@dataclass(frozen=True)
class Started:
    """One process of a deployment.

    Args:
        words: what comes after `onboard`.
        environment: what the files set, with the image's.
        grace_seconds: from SIGTERM to SIGKILL.
        health: the command of its health check; empty when it has none.
    """

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    grace_seconds: float = 0.0
    health: list[str] = field(default_factory=list)

    def with_changes(self, changes: dict[str, str]) -> Started:
        """The same with parts of words and values exchanged: places of a container, ports, devices."""
        pattern = re.compile("|".join(re.escape(old) for old in changes))

        def change(text: str) -> str:
            return pattern.sub(lambda match: changes[match[0]], text)

        return Started(
            [change(word) for word in self.words],
            {name: change(value) for name, value in self.environment.items()},
            self.grace_seconds,
            [change(word) for word in self.health],
        )


def compose_process(service: str) -> Started:
    """What a service of the compose file starts."""
    described = compose()["services"][service]
    disabled = described.get("healthcheck", {}).get("disable", False)
    return Started(
        described["command"],
        image_environment() | {name: str(value or "") for name, value in described["environment"].items()},
        seconds(described.get("stop_grace_period", "10s")),
        [] if disabled else described.get("healthcheck", {}).get("test", ["CMD", *health_command()])[1:],
    )


def kubernetes_process(name: str) -> Started:
    """What a Job or Deployment of the chart starts."""
    objects = chart(GPUS_WITHOUT_KEDA)
    pod = objects[name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    said = {variable["name"]: variable["value"] for variable in container.get("env", []) if "value" in variable}
    return Started(
        container["args"],
        image_environment() | objects["ConfigMap/onboard"]["data"] | said,
        pod.get("terminationGracePeriodSeconds", 30),
        container.get("livenessProbe", {}).get("exec", {}).get("command", []),
    )


def seconds(duration: str) -> float:
    """45s or 2m as seconds."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


class Command:
    """An `onboard` process, or one of another program, that goes on until it is stopped; a context manager."""

    def __init__(
        self, words: list[str], environment: dict[str, str], folder: Path, program: Sequence[str | Path] = (PROGRAM,)
    ) -> None:
        self._words, self._environment, self._folder = [*program, *words], environment, folder

    def __enter__(self) -> Self:
        self._log = self._folder / "command.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._words, stdout=log, stderr=log, cwd=self._folder, env=self._environment
            )
        return self

    def __exit__(self, *_error: object) -> None:
        kill_tree(self.process.pid)
        self.process.wait()

    def said(self) -> str:
        """What it has printed."""
        return self._log.read_text()

    def stop(self, within_seconds: float = 60.0) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within_seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it did not leave within {within_seconds} s:\n{self.said()}") from error
