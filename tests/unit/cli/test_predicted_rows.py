"""Rows that cannot be answered are skipped; a task's columns are remembered; file or folder by what exists."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.refusals import refused

from cli.bulk import is_bulk
from cli.prediction_files import read_inputs
from cli.text_fields import fields_of
from onboard.data.text_stream import BadRow
from onboard.domain.names import Reference
from onboard.errors import DatasetError, NotFoundError


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_blank_row_refuses_only_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "texts.jsonl", {"text": "One."}, {"text": " "}, {"text": "Three."})
    first, second, third = read_inputs(path, (), skip=True)
    assert isinstance(second, BadRow)
    assert (second.row, second.code) == (2, "empty_text")
    assert not isinstance(first, BadRow)
    assert not isinstance(third, BadRow)
    with refused("empty-text", row=2):
        read_inputs(path, ())
    with pytest.raises(DatasetError):  # nothing is left to answer
        read_inputs(written(path, {"text": ""}), (), skip=True)


class Service:
    """Knows a version that was carried from one of a job, and the columns that this job read."""

    def __init__(self, *text: str, gone: bool = False) -> None:
        self._text, self._gone = text, gone

    def version_document(self, reference: str) -> dict[str, Any]:
        carried = not reference.endswith("v1")
        return {"kind": "carried" if carried else "onboarded", "parent": "mood@v1", "job": None if carried else "j1"}

    def job(self, job: str) -> SimpleNamespace:
        if self._gone:
            raise NotFoundError(f"There is no job {job}.", "")
        return SimpleNamespace(document={"fields": {"text": list(self._text), "label": "topic"}})


@pytest.mark.parametrize(
    ("trained", "columns", "fields"),
    [
        (("message",), ("id", "message", "text"), ("message",)),  # though there is a usual name, too
        (("message",), ("id", "body"), ()),  # what reads the file says what is missing
        (("text",), ("text", "id"), ()),  # the usual name anyway
        (("head", "tail"), ("tail", "head"), ("head", "tail")),
    ],
)
def test_the_columns_of_the_training_are_read(
    tmp_path: Path, trained: tuple[str, ...], columns: tuple[str, ...], fields: tuple[str, ...]
) -> None:
    path = written(tmp_path / "texts.jsonl", dict.fromkeys(columns, "One."))
    service: Any = Service(*trained)
    reference = [Reference.parse("mood@v2")]
    assert fields_of(service, reference, str(path), ()) == fields
    assert fields_of(service, reference, str(path), ("id",)) == ("id",)
    assert fields_of(service, reference, str(tmp_path), ()) == fields  # a folder: by its first file
    gone: Any = Service(*trained, gone=True)
    assert fields_of(gone, reference, str(path), ()) == ()


def test_what_is_there_says_whether_answers_go_to_a_file_or_a_folder(tmp_path: Path) -> None:
    source = str(written(tmp_path / "texts.jsonl", {"text": "One."}))
    (tmp_path / "folder").mkdir()
    (tmp_path / "plain").write_text("")
    places = {"folder": True, "plain": False, "new": False, "new/": True, "new.jsonl": False, "new.csv": False}
    for name, is_folder in places.items():
        assert is_bulk(source, f"{tmp_path}/{name}") is is_folder, name
    assert is_bulk(str(tmp_path / "folder"), f"{tmp_path}/new")
    assert is_bulk(None, f"{tmp_path}/folder")
    assert not is_bulk(None, f"{tmp_path}/new")
    with refused("output-is-file"):
        is_bulk(source, f"{tmp_path}/plain/")
    for name in ("plain", "new.jsonl"):
        with refused("output-is-file-for-source"):
            is_bulk(str(tmp_path / "folder"), f"{tmp_path}/{name}")
