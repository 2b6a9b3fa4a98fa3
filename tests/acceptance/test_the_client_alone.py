"""`pip install onboard-client`: built from this checkout, installed in an empty environment, used on a server.

The libraries that it requires are not downloaded: the environment has links to those of the one that runs the tests,
and to nothing else.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from importlib import metadata
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from support.program import Place
from support.served import Served, served

from onboard.bases import Base

ROOT = Path(__file__).parent.parent.parent
ABSENT = (
    "torch",
    "transformers",
    "sqlalchemy",
    "celery",
    "scipy",
    "sklearn",
    "fastapi",
    "cli",
    "workers",
    "migrations",
)
MOST_SECONDS = 0.3  # of the processor, that importing the client takes
MOST_TIMES = 2.5  # as long as its libraries alone


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    archives = tmp_path_factory.mktemp("archives")
    build = [sys.executable, ROOT / ".ci" / "wheels", archives, "client"]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(archives.glob("onboard_client-*.tar.gz"))) == 1
    (built,) = archives.glob("onboard_client-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the client and the libraries that it requires."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    program = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", program, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    for distribution in required(of_wheel(wheel)["Requires-Dist"]):
        link(distribution, packages)
    return program


def of_wheel(wheel: Path) -> dict[str, list[str]]:
    """The metadata of a wheel, every value of each name."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        facts = message_from_bytes(archive.read(name))
    return {name: facts.get_all(name, []) for name in ("Name", "Requires-Dist")}


def required(requirements: list[str]) -> Iterator[metadata.Distribution]:
    """The distributions of this environment that are installed with these requirements."""
    seen: set[str] = set()
    waiting = [Requirement(requirement) for requirement in requirements]
    while waiting:
        requirement = waiting.pop()
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(requirement.name)
        distribution = metadata.distribution(requirement.name)
        yield distribution
        waiting += [Requirement(needed) for needed in distribution.requires or []]


def link(distribution: metadata.Distribution, packages: Path) -> None:
    """Let a distribution be found in a folder of packages, too."""
    for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


def run(python: Path, program: str, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [python, "-c", program, *words], cwd=home, env=environment, capture_output=True, text=True, check=False
    )


def test_nothing_of_the_service_is_there_and_the_client_comes_in_at_once(python: Path, tmp_path: Path) -> None:
    program = (
        "import importlib.util, json, time\n"
        f"absent = [name for name in {ABSENT!r} if importlib.util.find_spec(name)]\n"
        "before = time.process_time()\n"
        "import httpx\n"
        "from pydantic import BaseModel\n"
        "libraries = time.process_time()\n"
        "import onboard.client\n"
        "after = time.process_time()\n"
        "print(json.dumps([absent, libraries - before, after - before, onboard.__path__]))\n"
    )
    answers = []
    for _ in range(5):
        done = run(python, program, home=tmp_path)
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    absent, _, _, where = answers[0]
    assert absent == []
    assert all(str(ROOT) not in place for place in where)
    # a processor that others use meanwhile is slower: then the libraries are, too
    libraries, whole = (min(answer[place] for answer in answers) for place in (1, 2))
    assert whole < max(MOST_SECONDS, MOST_TIMES * libraries)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Iterator[Served]:
    place = Place(tmp_path_factory.mktemp("service"), tiny_base.folder)
    place.home.mkdir()
    with served(place) as serving:
        yield serving


ASK = """
import json, sys
from onboard.client import Onboard
from onboard.errors import NotFoundError

url, token, task = sys.argv[1:]
with Onboard(url, token) as client:
    embedding = client.embedding(task)
    try:
        client.task("nothing")
    except NotFoundError as error:
        refused = error.code
    checked = client.check([{"text": f"text {n}", "label": n % 2} for n in range(12)], "rows")
    (answer,) = client.predict([{"task": task, "text": "A moving film."}])
    print(json.dumps({
        "scopes": [scope.value for scope in client.me().scopes],
        "numbers": embedding.vector.tolist(),
        "again": client.embedding(f"{task}@v1").content == embedding.content,
        "tasks": [found.name for found in client.tasks()],
        "refused": refused,
        "rows": checked.rows["train"],
        "answered": [answer.task, answer.version],
    }))
"""


def test_it_talks_to_a_server(python: Path, service: Served, tiny_base: Base, tmp_path: Path) -> None:
    task = next(source.name for source in tiny_base.sources if not source.pairs)
    done = run(python, ASK, service.url, service.token, task, home=tmp_path)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["numbers"] == tiny_base.embeddings[task].tolist()
    assert set(said["tasks"]) == {source.name for source in tiny_base.sources}
    assert (said["again"], said["refused"], said["answered"]) == (True, "not_found", [task, 1])
    assert said["rows"] > 0
    assert "admin" in said["scopes"]


def builder() -> ModuleType:
    """`.ci/wheels` as a module."""
    loader = SourceFileLoader("wheels", str(ROOT / ".ci" / "wheels"))
    spec = importlib.util.spec_from_loader("wheels", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def modules(project: Path) -> set[str]:
    """The files of the package in a project."""
    paths = (project / "onboard").rglob("*")
    return {
        path.relative_to(project).as_posix() for path in paths if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_two_projects_share_no_file_and_leave_none_out_and_one_requires_the_other(tmp_path: Path) -> None:
    wheels = builder()
    files: list[set[str]] = []
    for name in ("client", "main"):
        folder = tmp_path / name
        folder.mkdir()
        getattr(wheels, f"{name}_project")(folder)
        files.append(modules(folder))
    assert files[0] & files[1] == set()
    assert files[0] | files[1] == modules(ROOT)
    assert "onboard/client/local.py" in files[1]
    assert '"onboard-client==' in (tmp_path / "main" / "pyproject.toml").read_text(encoding="utf-8")
