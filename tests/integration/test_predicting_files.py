"""`onboard predict` over folders, and by several tasks at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.command_line import CommandLine
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.registry.services import Services

LABELS = ("sad", "happy")
TEXTS = ["good film", "a bad plot", "", "the film was great and not sad", "awful"]


@pytest.fixture
def command(tiny_services: Services, tiny_base: Base, command_line: CommandLine) -> CommandLine:
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), pairs=False)
    add_version(tiny_services, tiny_base, "kind", ("a", "b", "c"), ("good", "bad", "film"), z=embedding_of(2))
    add_version(tiny_services, tiny_base, "alike", LABELS, LABELS, z=embedding_of(3), pairs=True)
    command_line.at_home(tiny_services.settings)
    return command_line


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    parquet.write_table(pa.table({"text": TEXTS, "id": range(5)}), folder / "a.parquet")
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:2]))
    return folder


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("part-*")) for line in path.read_text().splitlines()]


def test_a_folder_is_answered_as_its_rows_are_alone(command: CommandLine, source: Path, tmp_path: Path) -> None:
    said = command("predict", "mood", "--input", source, "--output", tmp_path / "out", "--json")
    assert said.code == 0, said.err
    document = said.document
    assert document["versions"] == ["mood@v1"]
    assert (document["rows"], document["bad_rows"], document["shards"], document["files"]) == (7, 1, 2, 2)
    assert "1 of 7 rows" in said.err
    rows = lines(tmp_path / "out")
    assert [row.get("id") for row in rows] == [0, 1, None, 3, 4, None, None]
    assert (rows[2]["error"]["row"], Path(rows[2]["error"]["file"]).name) == (3, "a.parquet")
    for row in rows[:2]:
        (alone,) = command("predict", "mood", "--text", row["text"], "--json").document["predictions"]
        assert row["label"] == alone["label"]
        assert row["probability"] == pytest.approx(alone["probability"], abs=1e-5)
    again = command("predict", "mood", "--input", source, "--output", tmp_path / "out")
    assert (again.code, "2 of them from before" in again.out) == (0, True)
    other = command("predict", "kind", "--input", source, "--output", tmp_path / "out", "--json")
    assert (other.code, other.error["type"]) == (4, "output-of-other-request")


def test_several_tasks_answer_every_row(command: CommandLine, source: Path, tmp_path: Path) -> None:
    words = ("--input", source, "--output", f"{tmp_path}/out/", "--labels", "happy,sad", "--probabilities")
    assert command("predict", "--tasks", "mood,mood@v1", *words).code == 0
    (first, *_) = lines(tmp_path / "out")
    assert [share["label"] for answer in first["answers"] for share in answer["probabilities"]] == [*LABELS, *LABELS]
    said = command("predict", "--tasks", "mood,kind@v1", "--text", "good film", "--json")
    assert [answer["task"] for answer in said.document["predictions"]] == ["mood", "kind"]


def test_a_task_that_is_not_there_errs_and_the_others_answer(command: CommandLine) -> None:
    said = command("predict", "--tasks", "mood,nothing", "--text", "good film", "--json")
    known, unknown = said.document["predictions"]
    assert (said.code, known["task"], known["version"]) == (3, "mood", 1)
    assert (unknown["task"], unknown["error"]["code"]) == ("nothing", "not_found")
    assert "There is no" in said.err
    assert command("predict", "--tasks", "mood,nothing", "--text", "good film").code == 3


@pytest.mark.parametrize(
    ("words", "code", "type_"),
    [
        (("predict", "nothing"), 3, "unknown-task"),
        (("predict", "--tasks", "mood,nothing"), 3, "unknown-task"),
        (("predict", "alike"), 2, "input-pairs-differ"),
        (("predict", "mood", "--labels", "happy,furious"), 2, "input-labels-wrong"),
        (("predict", "mood", "--labels", "happy"), 2, "input-labels-wrong"),
        (("predict", "mood", "--tasks", "kind"), 2, "predict-without-task"),
        (("predict", "--tasks", "kind,kind"), 2, "tasks-repeated"),
        (("predict", "mood", "--text", "good"), 2, "predict-without-text"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anything_is_written(
    command: CommandLine, source: Path, tmp_path: Path, words: tuple[str, ...], code: int, type_: str
) -> None:
    said = command(*words, "--input", source, "--output", tmp_path / "out", "--json")
    assert (said.code, said.error["type"]) == (code, type_), said.err
    assert not list((tmp_path / "out").glob("[!.]*"))


def test_a_folder_needs_one_for_its_answers(command: CommandLine, source: Path) -> None:
    said = command("predict", "mood", "--input", source, "--json")
    assert (said.code, said.error["type"]) == (2, "output-missing-for-source")
