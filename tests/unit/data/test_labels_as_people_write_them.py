"""Labels that look alike, have blanks around them or lose their last digits; rows and files that hold nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dataset_rows import balanced
from pyarrow import parquet

from onboard.data.read import read_dataset
from onboard.data.texts import read_texts
from onboard.errors import DatasetError


def write_csv(path: Path, rows: list[tuple[str, ...]]) -> Path:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    return path


def labelled(path: Path, first: str, second: str) -> Path:
    rows = [(f"text {i}", (first, second, "other")[i % 3]) for i in range(24)]
    return write_csv(path, [("text", "label"), *rows])


def warned(path: Path) -> dict[str, str]:
    return {finding.code: finding.message for finding in read_dataset(path).report.warnings}


@pytest.mark.parametrize(
    ("first", "second", "points"),
    [
        ("don\u2019t", "don't", ["U+2019"]), ("e\u2011mail", "e-mail", ["U+2011"]),
        ("e\u2013mail", "e-mail", ["U+2013"]),
        ("\u22125", "-5", ["U+2212"]), ("1,5", "1.5", []), ("\u0430pple", "apple", ["U+0430"]),
        ("\u0391pple", "Apple", ["U+0391"]), ("\u201cyes\u201d", '"yes"', ["U+201C", "U+201D"]),
        ("\uff21", "A", []), ("C\u041e2", "CO2", ["U+041E"]),
    ],
)  # fmt: skip
def test_labels_that_look_alike_are_named_with_their_code_points(
    tmp_path: Path, first: str, second: str, points: list[str]
) -> None:
    message = warned(labelled(tmp_path / "a.csv", first, second))["near_identical_labels"]
    assert all(point in message for point in points)


@pytest.mark.parametrize(
    ("first", "second"), [("a+", "a-"), ("1,500", "1.501"), ("\u0434\u0430", "\u043d\u0435\u0442"), ("3", "-3")]
)
def test_labels_that_do_not_look_alike_are_left_alone(tmp_path: Path, first: str, second: str) -> None:
    assert "near_identical_labels" not in warned(labelled(tmp_path / "a.csv", first, second))


def test_blanks_around_a_label_are_none_of_it(tmp_path: Path, write_jsonl: Callable[..., Path]) -> None:
    from_csv = read_dataset(labelled(tmp_path / "a.csv", " pos", "neg\u00a0")).dataset
    assert from_csv.labels == ("neg", "other", "pos")
    rows = [{**row, "label": f" {row['label']}\t" if number % 4 < 2 else row["label"]}
            for number, row in enumerate(balanced())]  # fmt: skip
    assert read_dataset(write_jsonl(rows)).dataset.labels == ("bad", "good")


def test_an_integer_that_a_float_cannot_hold_is_refused_beside_a_fraction(write_jsonl, problems_of) -> None:
    large = 2**53
    rows = [{"text": f"t {i}", "label": (large, large + 1, 0.5)[i % 3]} for i in range(12)]
    problems = problems_of(write_jsonl(rows))
    assert [(problem["row"], problem["code"]) for problem in problems] == [
        (row, "inexact_label") for row in (2, 5, 8, 11)
    ]
    assert str(large + 1) in problems[0]["message"]
    problems = problems_of(
        write_jsonl([{**row, "label": 10**190 if row["label"] == large + 1 else row["label"]} for row in rows])
    )
    assert {problem["code"] for problem in problems} == {"inexact_label"}
    for row in rows:
        row["label"] = int(row["label"] * 2)
    assert read_dataset(write_jsonl(rows)).dataset.labels == (1, 2 * large, 2 * large + 2)


def test_rows_of_separators_are_skipped_and_counted(tmp_path: Path) -> None:
    rows = [(f"text {i}", ("pos", "neg")[i % 2], "") for i in range(12)]
    path = write_csv(tmp_path / "a.csv", [("text", "label", "note"), *rows, ("", " ", ""), ("", "", "")])
    checked = read_dataset(path)
    assert len(checked.dataset.train) == 12
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "blank_rows"]
    assert finding.count == 2
    assert len(read_texts(path)) == 12


def test_a_header_that_is_repeated_among_the_rows_is_refused(tmp_path: Path) -> None:
    rows = [(f"text {i}", ("pos", "neg")[i % 2]) for i in range(12)]
    path = write_csv(tmp_path / "a.csv", [("text", "label"), *rows, ("text", "label"), *rows])
    with pytest.raises(DatasetError) as caught:
        read_dataset(path)
    assert [(problem["code"], problem["row"]) for problem in caught.value.data["problems"]] == [("repeated_header", 13)]


# --- files of one split ---


def shards(folder: Path, tables: list[pa.Table]) -> Path:
    for number, table in enumerate(tables):
        parquet.write_table(table, folder / f"train-{number:05d}-of-{len(tables):05d}.parquet")
    return folder


def some_rows(start: int, labels: list[Any]) -> pa.Table:
    return pa.table({"text": [f"text {start + i}" for i in range(12)], "label": labels * (12 // len(labels))})


def test_a_shard_without_rows_is_skipped_and_counted(tmp_path: Path) -> None:
    whole = some_rows(0, ["a", "b"])
    checked = read_dataset(shards(tmp_path, [whole.slice(0, 0), whole, some_rows(12, ["a", "b"])]))
    assert len(checked.dataset.train) == 24
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "empty_files"]
    assert (finding.count, "train-00000-of-00003.parquet" in finding.message) == (1, True)


def test_shards_that_are_all_empty_hold_no_rows(tmp_path: Path) -> None:
    nothing = some_rows(0, ["a", "b"]).slice(0, 0)
    with pytest.raises(DatasetError) as caught:
        read_dataset(shards(tmp_path, [nothing, nothing]))
    assert {problem["code"] for problem in caught.value.data["problems"]} == {"empty_file"}


def test_shards_with_labels_of_several_types_are_named(tmp_path: Path) -> None:
    checked = read_dataset(shards(tmp_path, [some_rows(0, ["a", "b"]), some_rows(12, [0, 1])]))
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "mixed_label_types"]
    assert re.search(r"strings in \S*train-00000-of-00002\.parquet", finding.message)
    assert re.search(r"integers in \S*train-00001-of-00002\.parquet", finding.message)


def test_integers_and_fractions_are_numbers_alike(tmp_path: Path) -> None:
    checked = read_dataset(shards(tmp_path, [some_rows(0, [0, 1]), some_rows(12, [0.5, 1.0])]))
    assert "mixed_label_types" not in {finding.code for finding in checked.report.warnings}


# --- columns ---


def test_the_same_column_as_text_and_label_is_refused(write_jsonl, problems_of) -> None:
    path = write_jsonl(balanced())
    (problem,) = problems_of(path, text_fields=("text",), label_field="text")
    assert problem["code"] == "label_field"
    (problem,) = problems_of(path, text_fields=("text", "text"))
    assert problem["code"] == "text_field"


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow"])
def test_no_column_vanishes_for_its_name(tmp_path: Path, kind: str) -> None:
    names, values = ["text", "a", "a", "a_2", "", ""], ["fine", "1", "2", "3", "4", "5"]
    path = tmp_path / f"x.{kind}"
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        path.write_text(mark.join(names) + "\n" + mark.join(values) + "\n")
    else:
        table = pa.table([[value] for value in values], names=names)
        if kind == "parquet":
            parquet.write_table(table, path)
        else:
            with pa.ipc.new_stream(str(path), table.schema) as writer:
                writer.write_table(table)
    (row,) = read_texts(path)
    given = {name: value.decode() if isinstance(value, bytes) else value for name, value in row.given.items()}
    assert given == {"text": "fine", "a": "1", "a_3": "2", "a_2": "3", "column_5": "4", "column_6": "5"}


def test_half_a_surrogate_and_bytes_are_written_as_json(write_jsonl) -> None:
    path = write_jsonl([{"text": "a", "x": json.loads('"\\ud800"')}])
    assert read_texts(path)[0].given["x"] == "\ud800"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text,label\n".encode("utf-32"), "UTF-32"), ("text,label\n".encode("utf-32-le"), "UTF-32LE"),
        ("text,label\n".encode("utf-32-be"), "UTF-32BE"), ("text,label\n".encode("utf-16-le"), "UTF-16LE"),
        ("text,label\n".encode("utf-16-be"), "UTF-16BE"), ("text,label\n".encode("utf-16"), "UTF-16"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_what_a_file_is_instead_is_named_with_the_remedy(write_bytes, problems_of, content, words, name) -> None:
    (problem,) = problems_of(write_bytes(content, name))
    assert words in problem["message"]
    assert "git lfs pull" in problem["remedy"] if "LFS" in words else f"iconv -f {words} -t UTF-8" in problem["remedy"]
