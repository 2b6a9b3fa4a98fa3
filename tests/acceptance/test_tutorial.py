"""The tutorial and the notebook, followed word by word by somebody with an empty home."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.forked import forked_program
from support.program import PROGRAM, Place

from onboard.domain.names import Reference
from onboard.serving import Predictor

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOTEBOOK = ROOT / "examples" / "onboard.ipynb"


@pytest.fixture
def somebody(elsewhere: Place) -> Place:
    """Who has the program on the path."""
    elsewhere.more["PATH"] = f"{PROGRAM.parent}:/usr/bin:/bin"
    return elsewhere


@pytest.fixture
def shipped(tmp_path: Path) -> Iterator[Place]:
    """The same with the base that ships, and whatever the tutorial's reader has."""
    with forked_program(seconds=2400) as program:
        place = Place(tmp_path / "shipped", Path("mini"), {"PATH": f"{program}:{PROGRAM.parent}:/usr/bin:/bin"})
        place.folder.mkdir()
        yield place
        place.leave()


def followed(place: Place, block: str) -> str:
    """What a block prints; it has to succeed."""
    done = subprocess.run(
        ["sh", "-euc", block], cwd=place.folder, env=place.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, block + done.stdout + done.stderr
    return done.stdout


def blocks() -> list[str]:
    parts = BLOCK.findall((ROOT / "docs" / "tutorial" / "first-task.md").read_text(encoding="utf-8"))
    assert {language for language, _ in parts} == {"sh"}
    return [block for _, block in parts]


RIGHT = {
    "The soup was cold and the waiter rude.": "complaint",
    "Thank you for the beautiful days!": "praise",
    "The lamp flickers all night.": "complaint",
    "Best coffee in town.": "praise",
}
FIRST_WRONG = ("notes@v1", "The lamp flickers all night.")  # which the tutorial says, and its further rows mend


def asked_for() -> list[tuple[str, str, str]]:
    """Reference, text and right answer of every text that the tutorial asks by itself."""
    asked = re.findall(r'^onboard predict (\S+) --text "([^"]+)"', "".join(blocks()), re.MULTILINE)
    return [(reference, text, RIGHT[text]) for reference, text in asked]


def test_the_tutorial_asks_nothing_whose_answer_is_not_known_to_be_right() -> None:
    assert {text for _, text, _ in asked_for()} == RIGHT.keys()


@pytest.mark.timeout(2400)
def test_the_tutorial_ends_with_its_versions_and_every_text_gets_the_answer_that_it_shows(shipped: Place) -> None:
    printed = ""
    for block in blocks():
        printed = followed(shipped, block)
    versions = shipped.json("versions", "notes")
    numbers = [version["version"] for version in versions["versions"]]
    assert numbers in ([1, 2], [1, 2, 3])
    assert versions["versions"][-1]["method"] == "linear"
    assert versions["aliases"]["production"] == 1  # taken back
    assert "<html" in (shipped.folder / "notes.html").read_text(encoding="utf-8")
    latest = versions["versions"][versions["aliases"]["latest"] - 1]
    name = "weights.safetensors" if latest["method"] == "linear" else "embedding.safetensors"
    assert (shipped.folder / "handed-on" / name).is_file()
    assert printed.split()[0] in {"praise", "complaint"}  # the last block asks that folder alone
    answers = (shipped.folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(answer)["label"] for answer in answers] == ["praise", "complaint"]
    # the blocks have run `onboard predict`; here one model answers all of it again
    inputs = [(Reference.parse(reference), text) for reference, text, _ in asked_for()]
    inputs += [(Reference("notes", name), "x") for name in ("v1", "latest")]
    with shipped.services() as services, closing(Predictor(services)) as predictor:
        *predictions, first, latest = predictor.predict(
            [{"task": reference.task, "ref": reference.ref, "text": text} for reference, text in inputs]
        )
    for answer, (reference, text, label) in zip(predictions, asked_for(), strict=True):
        if (reference, text) == FIRST_WRONG:
            assert (answer.label, answer.probability < 0.7) == ("praise", True), "the tutorial says so"
            continue
        assert answer.label == label, f"{reference}: {text}"
        least = 0.65 if text == FIRST_WRONG[1] else 0.75  # plain texts, not toss-ups
        assert answer.probability > least, f"{reference}: {text}"
    assert first.version < latest.version  # the improved one was asked


@pytest.mark.timeout(2400)
def test_the_notebook_runs_from_the_first_cell_to_the_last(somebody: Place) -> None:
    program = (
        "import sys, nbformat\n"
        "from nbclient import NotebookClient\n"
        "notebook = nbformat.read(sys.argv[1], as_version=4)\n"
        "NotebookClient(notebook, timeout=None, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, 'done.ipynb')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, NOTEBOOK],
        cwd=somebody.folder,
        env=somebody.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [text for cell in cells(somebody.folder / "done.ipynb") for text in texts(cell)]
    assert any(re.search(r"^dinners@v1: (praise|complaint) \(\d\.\d\d\)$", text, re.MULTILINE) for text in printed)
    files = {path.name for path in (somebody.folder / "dinners").iterdir()}
    assert files & {"embedding.safetensors", "weights.safetensors"}  # the second of a readout alone


def test_the_notebook_is_kept_without_what_a_run_printed() -> None:
    assert [cell for cell in cells(NOTEBOOK) if cell["cell_type"] == "code" and cell["outputs"]] == []
    assert not any(cell.get("execution_count") for cell in cells(NOTEBOOK))


def cells(path: Path) -> list[dict[str, Any]]:
    notebook: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return notebook


def texts(cell: dict[str, Any]) -> list[str]:
    return ["".join(output.get("text", "")) for output in cell.get("outputs", ())]
