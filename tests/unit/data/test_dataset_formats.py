"""Files of every format become the same rows; broken files are told by row, line and byte."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_rows import balanced, peak_of, with_200_mb
from support.refusals import refused

from onboard.data import limits
from onboard.data.formats import budget, parquet, source
from onboard.data.rows import require_format

PAIRS = [
    {"text_a": 'He said "no", twice', "text_b": "Line one\nline two", "label": "same"},
    {"text_a": "ünïcödé ☃ 漢字", "text_b": "plain", "label": "other"},
    {"text_a": "a\\b;c", "text_b": "'quoted'", "label": "same"},
]


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> bytes:
    return parquet_of(pa.Table.from_pylist(rows, schema=schema))


def parquet_of(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("d.jsonl", as_jsonl(PAIRS)),
        ("d.ndjson", b"\xef\xbb\xbf" + as_jsonl(PAIRS).replace(b"\n", b"\r\n")),
        ("d.json", as_jsonl(PAIRS).replace(b"\n", b"\n\n")),
        ("d.csv", as_csv(PAIRS)),
        ("d.csv", b"\xef\xbb\xbf" + as_csv(PAIRS, ";")),
        ("d.csv", as_csv(PAIRS, "\t")),
        ("d.parquet", as_parquet(PAIRS)),
        ("d.csv.gz", gzip.compress(as_csv(PAIRS))),
        ("d.parquet.gz", gzip.compress(as_parquet(PAIRS))),
        ("D.JSONL.GZ", gzip.compress(as_jsonl(PAIRS))),
        ("gzipped-but-not-named-so.jsonl", gzip.compress(as_jsonl(PAIRS))),
    ],
)
def test_every_format_gives_the_same_rows_and_digest(name, data, write_bytes, write_jsonl, read) -> None:
    reference = read(write_jsonl(PAIRS, "reference.jsonl"))
    checked = read(write_bytes(data, name))
    assert checked.dataset == reference.dataset
    assert checked.report.digest == reference.report.digest
    assert {row.text_b for row in checked.dataset.train} == {"Line one\nline two", "plain", "'quoted'"}


def test_tsv_is_read_literally_so_stray_quotes_swallow_nothing(write_bytes, read) -> None:
    lines = ["sentence\tlabel", '"I mean" she said\tgood', 'An opening " only\tbad', '"Wholly ""quoted"""\tgood']
    dataset = read(write_bytes("\r\n".join(lines).encode(), "d.tsv")).dataset
    assert {row.text_a for row in dataset.train} == {'"I mean" she said', 'An opening " only', 'Wholly "quoted"'}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("sentence", "label"), ("sentence",)),
        (("sentence1", "sentence2", "label"), ("sentence1", "sentence2")),
        (("premise", "hypothesis", "gold_label"), ("premise", "hypothesis")),
        (("question1", "question2", "label"), ("question1", "question2")),
        (("question", "passage", "label"), ("question", "passage")),
        (("idx", "question", "sentence", "label"), ("question", "sentence")),
        (("Text", "Label"), ("Text",)),
    ],
)
def test_the_usual_field_names_are_recognised(names, expected, write_jsonl, read) -> None:
    rows = [{name: f"{name} {i}" if name != names[-1] else f"label {i % 2}" for name in names} for i in range(6)]
    report = read(write_jsonl(rows)).report
    assert (report.fields.text, report.fields.label) == (expected, names[-1])


def test_fields_can_be_mapped(write_jsonl, read) -> None:
    rows = [
        {"headline": f"h {i}", "body": f"b {i}", "text": "decoy", "label": "x", "desk": f"d{i % 2}"} for i in range(4)
    ]
    checked = read(write_jsonl(rows), text_fields=("headline", "body"), label_field="desk")
    assert {(row.text_a, row.text_b, row.label) for row in checked.dataset.train} == {
        (f"h {i}", f"b {i}", f"d{i % 2}") for i in range(4)
    }


@pytest.mark.parametrize(
    ("rows", "options", "codes"),
    [
        ([{"words": "a", "verdict": "x"}], {}, ["text_field", "label_field"]),
        ([{"text": "a", "text_a": "b", "text_b": "c", "label": "x"}], {}, ["text_field"]),
        ([{"text_a": "a", "label": "x"}], {}, ["text_field"]),
        ([{"text": "a", "label": "x"}], {"text_fields": ("body",)}, ["unknown_field"]),
        ([{"text": "a", "label": "x"}], {"label_field": "class"}, ["unknown_field"]),
        ([{}], {}, ["text_field"]),
    ],
)
def test_fields_that_cannot_be_found_are_told_with_those_that_are_there(
    rows, options, codes, write_jsonl, problems_of
) -> None:
    problems = problems_of(write_jsonl(rows), **options)
    assert [problem["code"] for problem in problems] == codes
    assert all(problem["remedy"] for problem in problems)


def test_class_label_names_of_parquet_are_resolved_and_minus_one_is_no_label(write_bytes, read, problems_of) -> None:
    features = {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    schema = pa.schema([("text", pa.string()), ("label", pa.int64())], {b"huggingface": json.dumps(features).encode()})
    rows = [{"text": f"t {i}", "label": i % 2} for i in range(6)]
    assert read(write_bytes(as_parquet(rows, schema), "d.parquet")).dataset.labels == ("neg", "pos")
    unlabelled = [*rows, {"text": "hidden", "label": -1}, {"text": "beyond", "label": 2}]
    problems = problems_of(write_bytes(as_parquet(unlabelled, schema), "u.parquet"))
    assert [(problem["row"], problem["code"]) for problem in problems] == [(7, "missing_label"), (8, "label_type")]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.int8(), [1, 2], (1, 2)),
        (pa.bool_(), [True, False], (False, True)),
        (pa.float32(), [0.1, 0.3], (0.1, 0.3)),
        (pa.large_string(), ["b", "a"], ("a", "b")),
        (pa.dictionary(pa.int32(), pa.string()), ["b", "a"], ("a", "b")),
    ],
)
def test_parquet_types_become_plain_labels(kind, values, expected, write_bytes, read) -> None:
    schema = pa.schema([("text", pa.string()), ("label", kind)])
    rows = [{"text": f"t {i}", "label": values[i % 2]} for i in range(6)]
    labels = read(write_bytes(as_parquet(rows, schema), "d.parquet")).dataset.labels
    assert [(type(label), label) for label in labels] == [(type(label), label) for label in expected]


def test_bad_utf8_in_parquet_is_told_by_row(write_bytes, problems_of) -> None:
    texts = pa.array([b"fine", b"bro\xffken", b"fine too"], pa.binary()).cast(pa.string(), safe=False)
    buffer = io.BytesIO()
    pq.write_table(pa.table({"text": texts, "label": ["a", "b", "a"]}), buffer)
    (problem,) = problems_of(write_bytes(buffer.getvalue(), "d.parquet"))
    assert (problem["code"], problem["row"], problem["field"]) == ("not_utf8", 2, "text")


def test_compressed_parquet_is_decompressed_for_its_schema_and_for_its_rows(write_bytes, read, monkeypatch) -> None:
    copies, seekable = [], parquet.seekable
    monkeypatch.setattr(parquet, "seekable", lambda path: copies.append(path) or seekable(path))
    assert len(read(write_bytes(gzip.compress(as_parquet(PAIRS)), "d.parquet.gz")).dataset.train) == len(PAIRS)
    assert len(copies) == 2


def test_only_the_wanted_columns_of_parquet_are_read(write_bytes, read) -> None:
    rows = [{"text": f"t {i}", "label": f"l{i % 2}", "blob": {"nested": [i]}} for i in range(4)]
    assert len(read(write_bytes(as_parquet(rows), "d.parquet")).dataset.train) == 4


@pytest.mark.parametrize(
    ("data", "name", "code", "row"),
    [
        (b"", "d.jsonl", "empty_file", None),
        (b" \n \n", "d.jsonl", "empty_file", None),
        (b"", "d.parquet", "empty_file", None),
        (b"text,label\n", "d.csv", "empty_file", None),
        (b"\x00\x01\x02\xff" * 99, "d.jsonl", "binary", None),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "d.csv", "binary", None),
        (as_parquet(PAIRS), "d.jsonl", "binary", None),
        (as_jsonl(PAIRS), "d.parquet", "not_parquet", None),
        (as_parquet(PAIRS)[:-20], "d.parquet", "bad_parquet", None),
        (b"PAR1" + b"junk" * 20, "d.parquet", "bad_parquet", None),
        (as_parquet(PAIRS).replace(b"label", b"lab\x80l"), "d.parquet", "bad_parquet", None),
        (as_jsonl(PAIRS), "d.xlsx", "unknown_format", None),
        (as_jsonl(PAIRS), "d", "unknown_format", None),
        ("text,label\na,b\n".encode("utf-16"), "d.csv", "not_utf8", 1),
        (json.dumps(PAIRS[0], indent=1).encode(), "d.json", "not_jsonl", 1),
        (gzip.compress(as_jsonl(balanced(5000)))[:-900], "d.jsonl.gz", "bad_gzip", None),
        (b"\x1f\x8bgarbage", "d.jsonl", "bad_gzip", None),
        (gzip.compress(as_jsonl(PAIRS)) + b"trailing junk", "d.jsonl", "bad_gzip", None),
        (b'text,label\n"never closed,a\nb,c\n', "d.csv", "bad_csv", 1),
        (b'text,label\n"closed" early,a\nb,c\nd,e\n', "d.csv", "bad_csv", 1),
        (b"text,label\na,b\rc,d\r\ne,f\ng,h\n", "d.csv", "bad_csv", 1),
        (b"text,label\nfine,a\none, two,b\n", "d.csv", "field_count", 2),
        (b"text\tlabel\nfine\ta\nno label\n", "d.tsv", "field_count", 2),
        (b"text,label,label\nfine,a,b\n", "d.csv", "doubled_column", None),
        (parquet_of(pa.table([["fine"], ["a"], ["b"]], ["text", "label", "label"])), "d.pq", "doubled_column", None),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_one_problem(data, name, code, row, write_bytes, problems_of) -> None:
    (problem,) = [problem for problem in problems_of(write_bytes(data, name)) if problem["code"] != "one_label"]
    assert (problem["code"], problem["row"]) == (code, row)
    assert problem["file"].endswith(name)


def test_a_missing_file_and_a_folder_are_input_errors(tmp_path, problems_of) -> None:
    assert problems_of(tmp_path / "nope.jsonl")[0]["code"] == "missing_file"
    with refused("folder-without-rows"):
        problems_of(tmp_path)
    assert problems_of(Path("/dev/zero"))[0]["code"] == "not_a_file"
    assert problems_of(tmp_path / ("x" * 300 + ".jsonl"))[0]["code"] == "unreadable_file"
    with refused("unreadable-file"):
        require_format(tmp_path / ("x" * 300 + ".jsonl"))
    assert problems_of(Path("nul\0.jsonl"))[0]["code"] == "missing_file"


def test_a_file_that_may_not_be_read_is_an_input_error(write_jsonl, problems_of, monkeypatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(source, "open_bytes", refuse)  # tests may run as root, whom no mode stops
    assert problems_of(write_jsonl(balanced()))[0]["code"] == "unreadable_file"


def test_bad_lines_are_told_by_row_and_byte_and_the_others_are_still_checked(write_bytes, problems_of) -> None:
    lines = [
        b'{"text": "fine", "label": "a"}',
        b'{"text": "caf\xe9", "label": "a"}',
        b"",
        b'{"text": "open", "label": ',
        b'["text", "label"]',
        b'{"text": "", "label": "a"}',
        b"[" * 5000,
        b'{"text": "big", "label": ' + b"9" * 5000 + b"}",
        b'{"text": "one", "label": "a", "text": "two"}',
    ]
    problems = problems_of(write_bytes(b"\n".join(lines), "d.jsonl"))
    assert [(problem["row"], problem["code"]) for problem in problems if problem["row"]] == [
        (2, "not_utf8"),
        (4, "bad_json"),
        (5, "not_an_object"),
        (6, "empty_text"),
        (7, "bad_json"),
        (8, "bad_json"),
        (9, "doubled_column"),
    ]
    bad_byte = len(lines[0]) + 1 + lines[1].index(b"\xe9")
    assert f"byte {bad_byte} " in problems[0]["message"]


def test_csv_problems_name_row_and_line(write_bytes, problems_of) -> None:
    data = b'text,label\n"two\nlines",a\ncaf\xe9,b\n"three\n\nlines",\n'
    problems = problems_of(write_bytes(data, "d.csv"))
    assert [(problem["row"], problem["line"], problem["code"]) for problem in problems] == [
        (2, 4, "not_utf8"),
        (3, 5, "missing_label"),
    ]


def test_a_line_of_200_mb_is_refused_without_being_held_in_memory(tmp_path, problems_of) -> None:
    before, after = b'{"text": "fine", "label": "a"}\n{"text": "', b'", "label": "a"}\n{"text": "", "label": "a"}\n'
    path = with_200_mb(tmp_path / "huge.jsonl.gz", before, after)
    problems, peak = peak_of(lambda: problems_of(path))
    assert [(problem["row"], problem["code"]) for problem in problems if problem["row"]] == [
        (2, "line_too_long"),
        (3, "empty_text"),
    ]
    assert peak < 16 << 20


def test_an_overlong_line_ends_the_reading_of_csv(write_bytes, problems_of) -> None:
    data = b"text,label\nfine,a\n" + b"x" * (limits.MAX_LINE_BYTES + 2) + b",b\n"
    problem = problems_of(write_bytes(data, "d.csv"))[0]
    assert (problem["code"], problem["row"], problem["line"]) == ("line_too_long", 2, 3)


@pytest.mark.parametrize("name", ["d.jsonl.gz", "d.csv.gz", "d.parquet", "d.parquet.gz"])
def test_content_beyond_the_limit_is_refused_however_well_it_is_packed(
    name, write_bytes, problems_of, monkeypatch
) -> None:
    for module in (source, budget):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", 10_000)
    rows = [{"text": f"{i} " + "x" * 100, "label": "a"} for i in range(1000)]
    data = {"jsonl": as_jsonl, "csv": as_csv, "parquet": as_parquet}[name.split(".")[1]](rows)
    packed = gzip.compress(data) if name.endswith(".gz") else data
    assert problems_of(write_bytes(packed, name))[0]["code"] == "too_large"


@pytest.mark.parametrize("name", ["d.jsonl", "d.parquet"])
def test_rows_beyond_the_limit_are_refused(name, write_bytes, problems_of, monkeypatch) -> None:
    for module in ("onboard.data.rows", "onboard.data.formats.budget"):
        monkeypatch.setattr(f"{module}.MAX_ROWS", 10)
    data = as_jsonl(balanced(11)) if name.endswith("jsonl") else as_parquet(balanced(11))
    assert problems_of(write_bytes(data, name))[0]["code"] == "too_many_rows"
