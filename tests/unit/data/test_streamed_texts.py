"""Rows of a file one after the other, the bad ones in their place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.refusals import refused

from onboard.data import text_stream
from onboard.data.text_stream import BadRow, stream_texts
from onboard.data.texts import TextRow, read_texts
from onboard.errors import DatasetError


def streamed(path: Path, fields: tuple[str, ...] = ()) -> list[object]:
    """What comes, in short: texts, or row and code of what is wrong."""
    rows = list(stream_texts(path, fields, shown="data"))
    return [tuple(row.texts.values()) if isinstance(row, TextRow) else (row.row, row.code) for row in rows]


def test_lines_that_are_no_rows_are_errors_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [
        "{broken",
        '{"text": "a", "id": 1}',
        '{"text": ""}',
        "",
        '{"text": 7}',
        '{"text": "b"}',
        '{"id": 2}',
        "[1]",
    ]
    path.write_text("\n".join(lines) + "\n")
    rows = list(stream_texts(path, shown="data"))
    assert streamed(path) == [
        (1, "bad_json"), ("a",), (3, "empty_text"), (5, "text_type"), ("b",), (7, "missing_text"), (8, "not_an_object"),
    ]  # fmt: skip
    assert isinstance(rows[1], TextRow)
    assert rows[1].given == {"text": "a", "id": 1}
    assert isinstance(rows[2], BadRow)
    document = rows[2].to_json()
    assert (document["file"], document["row"], document["code"]) == ("data", 3, "empty_text")
    assert "field text" in document["message"]


def test_a_csv_with_odd_lines_and_pairs(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'premise,hypothesis\na,b\n"c, d\ne",f\nonly one\n\xff,h\ng,\n,\ni,j\n')
    assert streamed(path) == [
        ("a", "b"),
        ("c, d\ne", "f"),
        (3, "field_count"),
        (4, "not_utf8"),
        (5, "empty_text"),
        ("i", "j"),  # the row of separators alone is passed over, as a blank line is
    ]
    last = [row for row in stream_texts(path) if isinstance(row, BadRow)][-1]
    assert "field hypothesis" in last.message or "; " in last.message
    assert last.line == 7


def test_parquet_and_gzip(tmp_path: Path) -> None:
    table = pa.table({"sentence": ["a", None, "", "b"], "n": [1, 2, 3, 4]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert streamed(tmp_path / "rows.parquet") == [("a",), (2, "missing_text"), (3, "empty_text"), ("b",)]
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a"}\n{}\n'))
    assert streamed(tmp_path / "rows.jsonl.gz") == [("a",), (2, "missing_text")]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.jsonl", b"", "empty_file"),
        ("a.txt", b"text", "unknown_format"),
        ("a.csv", b"text\n", "empty_file"),
        ("a.csv", b"other,columns\n1,2\n", "text_field"),
        ("a.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 5000)[:-50], "bad_gzip"),
        ("a.parquet", b"PAR1 no", "bad_parquet"),
    ],
)
def test_a_file_that_cannot_be_read_to_its_end_ends_it(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        list(stream_texts(tmp_path / name, shown="the file"))
    (problem,) = caught.value.data["problems"]
    assert (problem["code"], problem["file"]) == (code, "the file")


def test_the_one_field_of_an_export_is_its_text_whatever_it_is_called(tmp_path: Path) -> None:
    answers = {"mood": [{"value": "good", "user_id": "u1", "status": "submitted"}]}
    rows = [{"id": str(i), "fields": {"prompt": f"text {i}"}, "responses": answers} for i in range(3)]
    path = tmp_path / "export.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert streamed(path) == [("text 0",), ("text 1",), ("text 2",)]
    assert list(stream_texts(path)) == read_texts(path)


def test_bad_rows_without_end_are_not_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_stream, "_MOST_PENDING", 3)
    (tmp_path / "a.jsonl").write_text("{x\n" * 3 + '{"text": "a"}\n' + "{x\n" * 3)
    assert [row for row in streamed(tmp_path / "a.jsonl") if row == ("a",)] == [("a",)]
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n' + "{x\n" * 4)
    with refused("bad-rows"):
        streamed(tmp_path / "a.jsonl")
