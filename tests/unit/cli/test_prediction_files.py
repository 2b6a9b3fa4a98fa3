"""The files of `onboard predict`: texts come in every format of a dataset; CSV answers hold no formulas."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.refusals import refused as error_of

from cli.prediction_files import may_run, read_inputs, require_output, write_answers, write_label_next
from onboard.data.texts import TextRow
from onboard.errors import DatasetError, NotAllowedError

TEXTS = ["fine\u2028day", 'a "quoted", text', "=1+1"]

FORMULA_STARTS = tuple("=+-@\t\r\n\v\0\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212\u207a\u208b")

labels = st.one_of(
    st.text(max_size=30),
    st.tuples(st.sampled_from(FORMULA_STARTS), st.text(max_size=9)).map("".join),
    st.tuples(
        st.text("\0\ufeff\v \u00a0\u200b\t", max_size=3), st.sampled_from(FORMULA_STARTS), st.text(max_size=9)
    ).map("".join),
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.floats(-1e12, 1e12),
)


def answer(label: Any) -> dict[str, Any]:
    return {"label": label, "probability": 0.75, "task": "t", "version": 3}


def written(tmp_path: Path, *given: Any) -> bytes:
    path = tmp_path / "answers.CSV"
    write_answers([answer(label) for label in given], path)
    return path.read_bytes()


def file_of(name: str, rows: list[dict[str, str]], folder: Path) -> Path:
    path = folder / name
    if "parquet" in name:
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = io.StringIO(newline="")
    if "jsonl" in name:
        text.writelines(json.dumps(row) + "\n" for row in rows)
    else:
        quoting = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None} if "tsv" in name else {}
        writer = csv.writer(text, **quoting)  # type: ignore[arg-type]
        writer.writerows([list(rows[0]), *(row.values() for row in rows)])
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.csv", "x.csv.gz", "x.tsv", "x.parquet"])
def test_texts_are_read_from_every_format_without_labels(name: str, tmp_path: Path) -> None:
    rows = [{"Sentence": text, "id": str(number)} for number, text in enumerate(TEXTS)]
    read = read_inputs(file_of(name, rows, tmp_path), ())
    assert [row.texts for row in read] == [{"text": text} for text in TEXTS]
    write_answers([answer("fine")] * 3, tmp_path / "answers.jsonl", [row.given for row in read])
    written = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_bytes().split(b"\n")[:-1]]
    assert written == [{**row, **answer("fine")} for row in rows]


def test_other_columns_stand_before_the_answer_whatever_they_are_called_and_hold(tmp_path: Path) -> None:
    given = {
        "=1+1": "+1",
        "label": 3,
        "given_label": None,
        "when": date(2026, 1, 2),
        "tags": ["a", b"b"],
        "nan": math.nan,
    }
    write_answers([answer("fine")], tmp_path / "x.jsonl", [given])
    (line,) = (tmp_path / "x.jsonl").read_text().splitlines()
    columns = {"=1+1": "+1", "given_given_label": 3, "given_label": None, "when": "2026-01-02", "tags": ["a", "b"]}
    assert json.loads(line) == {**columns, "nan": None, **answer("fine")}
    shares = [{"label": label, "probability": share} for label, share in ((True, 0.75), ("=2", 0.25))]
    write_answers([{**answer(True), "weak": False, "probabilities": shares}], tmp_path / "x.csv", [given])
    heads, cells = csv.reader(io.StringIO((tmp_path / "x.csv").read_bytes().decode(), newline=""))
    assert heads[:2] == ["'=1+1", "given_given_label"]
    assert cells[:6] == ["'+1", "3", "", "2026-01-02", '["a", "b"]', ""]
    assert dict(zip(heads[6:], cells[6:], strict=True)) == {
        "label": "true", "probability": "0.75", "task": "t", "version": "3", "weak": "false",
        "probability of true": "0.75", "probability of =2": "0.25",
    }  # fmt: skip


def test_a_column_gives_way_to_what_only_some_answers_say(tmp_path: Path) -> None:
    given, asked = {"unknown": "where", "error": 404}, {**answer("fine"), "unknown": True}
    write_answers([answer("fine")], tmp_path / "x.jsonl", [given])
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {**given, **answer("fine")}
    write_answers([asked, {"error": "gone"}], tmp_path / "x.jsonl", [given] * 2)
    first, second = map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    assert first == {"given_unknown": "where", "given_error": 404, **asked}
    assert second == {"given_unknown": "where", "given_error": 404, "error": "gone"}


def test_fields_are_mapped_and_pairs_are_known(tmp_path: Path) -> None:
    rows = [{"premise": "a", "hypothesis": "b", "note": "c"}]
    assert read_inputs(file_of("x.csv", rows, tmp_path), ()) == [TextRow({"text_a": "a", "text_b": "b"}, rows[0])]
    assert read_inputs(file_of("x.csv", rows, tmp_path), ("note", "premise"))[0].texts == {"text_a": "c", "text_b": "a"}
    assert read_inputs(file_of("x.jsonl", rows, tmp_path), ("note",))[0].texts == {"text": "c"}
    with error_of("text-field-count", count=3):
        read_inputs(file_of("x.csv", rows, tmp_path), ("note", "premise", "hypothesis"))


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("x.jsonl", b'{"text": "a"}\n{"text": 7}\n', "text_type"),
        ("x.jsonl", b'{"text": "a"}\n{"text": " "}\n', "empty_text"),
        ("x.jsonl", b'{"text": "a"}\nnonsense\n', "bad_json"),
        ("x.jsonl", b"nonsense\n", "bad_json"),
        ("x.jsonl", b"{}\n", "empty_file"),
        ("x.jsonl", b"\n", "empty_file"),
        ("x.csv", b"text\n", "empty_file"),
        ("x.csv", b"name\nx\n", "text_field"),
        ("x.csv", b"text_a,text_b\nx\n", "field_count"),
        ("x.jsonl", b'{"text_a": "a", "text_b": "b"}\n{"text": "a"}\n', "text_field"),
        ("x.csv", b"text\n\xff\n", "not_utf8"),
        ("x.csv.gz", b"\x1f\x8bnonsense", "bad_gzip"),
        ("x.parquet", b"PAR1 nonsense", "bad_parquet"),
        ("x.txt", b"a\n", "unknown_format"),
        ("x.csv", b'text\ngood\n""\nbad\n', "empty_text"),
        ("x.tsv", b"text\tid\ngood\t1\n\t2\nbad\t3\n", "empty_text"),
    ],
)
def test_what_cannot_be_read_is_told_as_for_a_dataset(name: str, content: bytes, code: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        read_inputs(path, ())
    assert code in caught.value.data["problem_counts"]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_blank_lines_are_no_rows(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"text\n\ngood\n  \nbad\n\n")
    assert [row.texts["text"] for row in read_inputs(path, ())] == ["good", "bad"]


def test_where_answers_cannot_go_is_told_before_they_are_computed(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text("{}")
    with error_of("output-is-input"):
        require_output(texts, tmp_path / "." / "texts.jsonl")
    with error_of("answers-not-writable"):
        require_output(tmp_path / "nowhere" / "answers.jsonl", texts)
    require_output(tmp_path / "answers.jsonl", texts)
    assert [file.name for file in tmp_path.iterdir()] == ["texts.jsonl"]


def test_standard_input_is_named_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"text": "\xc3\xa4"}\n')))
    assert read_inputs(Path("-"), ())[0].texts == {"text": "ä"}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nonsense\n")))
    with error_of("bad-json", file="standard input", row=1):
        read_inputs(Path("-"), ())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[]")))
    with error_of("empty-file", file="standard input"):
        read_inputs(Path("-"), ())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(labels, min_size=1, max_size=8))
@example(["=cmd|' /C calc'!A0", "-1", -1, "\t=1", "x;=1+1", '"=1"', "\uff1d1", "'=1", True])
def test_no_cell_of_a_csv_begins_a_formula_and_every_row_is_kept(tmp_path: Path, given: list[Any]) -> None:
    text = written(tmp_path, *given).decode()
    header, *rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert header == ["label", "probability", "task", "version"]
    assert len(rows) == len(given)
    for label, row in zip(given, rows, strict=True):
        assert row[1:] == ["0.75", "t", "3"]
        if isinstance(label, str):
            assert not may_run(row[0])
            assert row[0] in (label, f"'{label}")
            assert (row[0] == label) is not may_run(label)
            assert may_run(label) or not label.lstrip("\0\ufeff\v \u00a0\u200b").startswith(("=", "+", "-", "@"))
        else:
            assert json.loads(row[0]) == label


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(labels, min_size=1, max_size=8))
@example(["x;=1+1", "a\r\n=1", "b\t+1", ",@a"])
def test_another_separator_makes_no_formula_of_a_part_of_a_text(tmp_path: Path, given: list[Any]) -> None:
    text = written(tmp_path, *given).decode()
    for separator in (";", "\t"):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(may_run(cell) for cell in row[1:]), row


@pytest.mark.parametrize("start", ["", " ", "\u00a0", "\0", "\ufeff", "\v", "\f", "\u200b", "\u2028", " \t\0 "])
@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", "\uff1d", "\ufe66", "\ufe62", "\ufe63", "\u2212", "\u207a", "\ufe6b"]
)
def test_no_blank_or_look_alike_lets_a_formula_through(start: str, sign: str) -> None:
    assert may_run(f"{start}{sign}1+1")


@pytest.mark.parametrize("text", ["", "a=b", " fine", "1-1", "'=1", "\u00fc", "\u2014 he said", "#", "\u00bd"])
def test_plain_texts_stay_as_they_are(text: str) -> None:
    assert not may_run(text)


def test_answers_are_jsonl_under_any_other_name(tmp_path: Path) -> None:
    write_answers([answer("=1"), answer(True)], tmp_path / "answers.txt")
    lines = (tmp_path / "answers.txt").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["=1", True]
    with error_of("answers-not-writable"):
        write_answers([answer("a")], tmp_path / "missing" / "answers.csv")


def test_texts_to_label_next_become_a_file_with_room_for_their_labels(tmp_path: Path) -> None:
    rows = [{"text": "=1+1", "uncertainty": 0.9, "answers": []}, {"text": "fine\u2028day", "uncertainty": 0.8}]
    job = {"job": "0123456789ab", "task": "mood", "label_next": {"rows": rows}}
    write_label_next(job, tmp_path / "next.jsonl")
    lines = (tmp_path / "next.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": row["text"], "label": None} for row in rows]
    write_label_next(job, tmp_path / "next.csv")
    assert (tmp_path / "next.csv").read_text(encoding="utf-8").startswith('"text","label"\n"\'=1+1",""\n')
    with error_of("no-texts-to-label"):
        write_label_next({"job": "0123456789ab", "task": "mood", "label_next": None}, tmp_path / "none.csv")
    with pytest.raises(NotAllowedError) as caught:
        write_label_next(job, tmp_path / "no folder" / "next.csv")
    assert caught.value.remedy == "--label-next another file"
