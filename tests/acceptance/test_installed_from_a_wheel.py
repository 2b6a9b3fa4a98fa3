"""What `pip install` gives: built as source and as wheel, installed in an empty environment, used without the checkout.

The big packages are not installed again: the new environment sees those of the one that runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from support.program import kill_tree

from onboard import __version__

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("cli", "migrations", "onboard", "workers")
BESIDE = (
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "NOTICE",
    "CHANGELOG.md",
    "constraints.txt",
    "requirements.lock",
)
FOLDERS = (*PACKAGES, "docs", "examples", "recipes")
ROWS = [
    {"text": f"{word} {thing}", "label": label}
    for label, words in {"good": ("lovely", "splendid", "fine"), "bad": ("broken", "awful", "useless")}.items()
    for word in words
    for thing in ("kettle", "lamp", "chair")
]


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it, and a user with an empty home.

    Args:
        programs: its `bin`.
        folder: the user's home, and the present folder of what they run.
    """

    programs: Path
    folder: Path

    def run(self, *words: str | Path, program: str = "onboard", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / program, *words],
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, *words: str | Path) -> dict[str, Any]:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source, built from a copy of what belongs to the package, and the wheel, built from that source alone."""
    copy, output = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("archives")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDE:
        shutil.copy(ROOT / name, copy / name)
    source, wheel = runpy.run_path(str(ROOT / ".ci" / "wheels"))["build"](copy, output)
    return output / source, output / wheel


@pytest.fixture(scope="module")
def source(archives: tuple[Path, Path]) -> Path:
    return archives[0]


@pytest.fixture(scope="module")
def wheel(archives: tuple[Path, Path]) -> Path:
    return archives[1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    (packages / "those_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    place = Installed(environment / "bin", tmp_path_factory.mktemp("somebody"))
    yield place
    for worker in place.json("workers", "list")["workers"]:
        kill_tree(worker["pid"])


def package_files() -> set[str]:
    """Every file of the packages in this checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (metadata,) = [archive.read(name) for name in names if name.endswith(".dist-info/METADATA")]
    assert {name for name in names if ".dist-info/" not in name} == package_files()
    facts = message_from_bytes(metadata)
    assert facts["Version"] == __version__
    assert set(facts.get_all("License-File", [])) == {"LICENSE", "NOTICE"}
    assert {"gpu", "s3", "serve"} <= set(facts.get_all("Provides-Extra", []))


def test_the_source_holds_documentation_examples_and_recipes(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pictures = re.findall(r"!\[.*?\]\((\S+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {
        "docs/how-to/submit.md",
        "examples/reviews.jsonl",
        "recipes/mini.toml",
        "constraints.txt",
        *pictures,
    } <= names


def test_the_program_runs_from_anywhere_under_both_names(installed: Installed) -> None:
    assert installed.run("--version").stdout == f"onboard {__version__}\n"
    assert installed.run("-m", "onboard", "--version", program="python").stdout == f"onboard {__version__}\n"
    asked = "import onboard, migrations; print(onboard.__path__, migrations.__path__)"
    where = installed.run("-c", asked, program="python")
    assert str(ROOT) not in where.stdout
    assert where.stdout.count(str(installed.programs.parent)) == 2


def test_a_shell_can_complete_commands_and_options(installed: Installed) -> None:
    def completed(words: str) -> list[str]:
        typed = {"COMP_WORDS": f"onboard {words}", "COMP_CWORD": str(len(words.split()))}
        return installed.run(_ONBOARD_COMPLETE="complete_bash", **typed).stdout.split()

    assert completed("jo") == ["jobs"]
    assert completed("jobs wa") == ["watch"]
    assert "--tune-hypernetwork" in completed("submit --tu")


def test_a_newcomer_gets_from_nothing_to_a_version_and_is_told_once_where_the_home_is(installed: Installed) -> None:
    rows = installed.folder / "things.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    assert installed.json("check", rows)["rows"]["train"] == len(ROWS)
    first = installed.run("tasks", "list", "--json")
    assert f"home: {installed.folder}/.onboard, created now; set ONBOARD_HOME to use another folder" in first.stderr
    assert "sst2" in {task["task"] for task in json.loads(first.stdout)["tasks"]}
    submitted = installed.run("submit", rows, "--fast", "--wait", "--json")
    assert submitted.returncode == 0, submitted.stderr
    assert "home:" not in submitted.stderr
    (answer,) = installed.json("predict", "things", "--text", "a lovely lamp")["predictions"]
    assert answer["label"] in ("good", "bad")
