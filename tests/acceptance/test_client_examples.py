"""examples/client.py, and what the documentation shows of the client, against a real server process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from support.program import Place
from support.published import add_version, embedding_of
from support.served import Served, served

from onboard.bases import Base

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    pytest.param(block, id=page.name)
    for page in PAGES
    for block in PYTHON.findall(page.read_text(encoding="utf-8"))
    if "from onboard.client import Onboard" in block and "http://127.0.0.1:8000" in block
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Iterator[Served]:
    """A service that has two tasks of its own, each in two versions."""
    place = Place(tmp_path_factory.mktemp("served"), tiny_base.folder)
    place.home.mkdir()
    with served(place) as opened:
        with place.services() as services:
            for task, seed in product(("paws", "reviews"), (1, 2)):
                add_version(services, tiny_base, task, ("no", "yes"), ("no", "yes"), z=embedding_of(seed))
        yield opened


def run(service: Served, *words: str) -> str:
    """What a program prints on a machine that has the client and nothing of the service."""
    environment = {"HOME": str(service.place.folder), **service.settings}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_fetches_verifies_and_predicts(service: Served) -> None:
    first, second, third = run(service, str(ROOT / "examples" / "client.py"), "reviews", "A joy to use.").splitlines()
    assert re.fullmatch(r"reviews@v2: 16 numbers, sha256:\w{12}…, just confirmed", first)
    assert re.fullmatch(r"only for hypernetwork v1 of base sha256:\w{12}…", second)
    assert re.fullmatch(r"'A joy to use\.' is '(yes|no)' \([01]\.\d\d\)", third)
    assert (service.place.folder / ".cache" / "onboard" / "contents").is_dir()


def test_the_readme_and_the_page_of_the_client_show_how_to_use_it() -> None:
    assert {"README.md", "use-the-client.md"} <= {shown.id for shown in SHOWN}


@pytest.mark.parametrize("block", SHOWN)
def test_what_the_documentation_shows_of_the_client_works(service: Served, block: str) -> None:
    said = run(service, "-c", block.replace("http://127.0.0.1:8000", service.url).replace("onb_…", service.token))
    assert said.startswith("paws@v2 ")
    assert "Prediction(label=" in said
