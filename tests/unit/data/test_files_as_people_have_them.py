"""Files as spreadsheets and labelling tools write them: read where what is meant is clear, else one error."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest
from dataset_rows import balanced

from onboard.data import limits
from onboard.data.formats import jsonl

ROWS = balanced(12)
CSV = "".join(f"{row['text']};{row['label']}\r\n" for row in ROWS)


def test_a_comma_inside_quotes_of_the_header_separates_nothing(write_bytes, read) -> None:
    data = '"Comment, free";Label\r\n"well, fine";good\r\nbad one;bad\r\n'
    dataset = read(write_bytes(data.encode(), "d.csv"), text_fields=("Comment, free",)).dataset
    assert {(row.text_a, row.label) for row in dataset.train} == {("well, fine", "good"), ("bad one", "bad")}


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"', "\ufeffsep=;"])
def test_a_first_line_that_names_the_separator_is_no_header(first, write_bytes, read) -> None:
    checked = read(
        write_bytes(f"{first}\r\nText, as it came;Label\r\n{CSV}".encode(), "d.csv"), text_fields=("Text, as it came",)
    )
    assert len(checked.dataset.train) == len(ROWS)


def test_lines_are_counted_from_the_first_of_the_file(write_bytes, problems_of) -> None:
    (problem,) = problems_of(write_bytes(f"sep=;\nText;Label\n{CSV};bad\n".encode(), "d.csv"))
    assert (problem["code"], problem["row"], problem["line"]) == ("empty_text", 13, 15)


def test_a_separator_that_does_not_fit_is_named_once(write_bytes, problems_of) -> None:
    (problem,) = problems_of(write_bytes(f"Text, as it came;Label\r\n{CSV}".encode(), "d.csv"))
    assert (problem["code"], problem["row"], problem["line"]) == ("separator", None, 1)
    assert "a comma" in problem["message"]
    assert "sep=;" in problem["remedy"]


@pytest.mark.parametrize("header", ['"text,label', '"text" ,"label"', 'text,"label'])
def test_a_header_that_cannot_be_read_is_its_own_fault_and_no_rows(header, write_bytes, problems_of) -> None:
    (problem,) = problems_of(write_bytes(f'{header}\n"a",b\n"c",d\n'.encode(), "d.csv"))
    assert (problem["code"], problem["row"], problem["line"]) == ("bad_csv", None, 1)
    assert "header" in problem["message"]


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.jsonl", "d.csv.gz"])
def test_lines_that_end_in_a_carriage_return_alone_are_told_of_the_file(name, write_bytes, problems_of) -> None:
    data = b"text,label\ra,b\rc,d\r"
    (problem,) = problems_of(write_bytes(gzip.compress(data) if name.endswith("gz") else data, name))
    assert (problem["code"], problem["row"], problem["line"]) == ("line_ends", None, None)
    assert "tr '\\r' '\\n'" in problem["remedy"]


@pytest.mark.parametrize("name", ["d.json", "d.jsonl", "d.json.gz"])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_an_array_of_objects_is_read_as_the_objects_are(
    name, indent, piece, write_bytes, write_jsonl, read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "PIECE_BYTES", piece)
    rows = [{"text": f"ünïcödé ☃ {i} ]}}, {{[", "label": "ab"[i % 2], "meta": {"at": [i, None]}} for i in range(9)]
    data = "\ufeff  " + json.dumps(rows, ensure_ascii=False, indent=indent) + "\r\n"
    packed = gzip.compress(data.encode()) if name.endswith("gz") else data.encode()
    assert read(write_bytes(packed, name)).dataset == read(write_jsonl(rows, "reference.jsonl")).dataset


@pytest.mark.parametrize(
    ("data", "code", "row"),
    [
        (b"[]", "empty_file", None),
        (b'[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}', "bad_json", 2),
        (b'[{"text": "a", "label": "x"} {"text": "b", "label": "y"}]', "bad_json", 1),
        (b'[{"text": "a", "label": "x"}, {"text": "b", "label": "y"},]', "bad_json", 3),
        (b'[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]\n[]', "bad_json", 2),
        (b'[{"text": "a", "label": "x"}, {"text": "b", "label": "y", "text": "c"}]', "doubled_column", 2),
        (b'[{"text": "a", "label": "x"}, {"text": "\xe9", "label": "y"}]', "not_utf8", None),
        (b'[{"text": "a", "label": "x"}, ' + b"[" * 5000, "bad_json", 2),
        (b'[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}, 3]', "not_an_object", 3),
        (b'[["a", "x"], {"text": "a", "label": "x"}, {"text": "b", "label": "y"}]', "not_an_object", 1),
    ],
)
def test_where_an_array_stops_being_one_is_told_by_the_objects_place(data, code, row, write_bytes, problems_of) -> None:
    problem = problems_of(write_bytes(data, "d.json"))[0]
    assert (problem["code"], problem["row"]) == (code, row)


def test_an_object_of_200_mb_is_refused_without_being_held_in_memory(tmp_path, problems_of) -> None:
    path = tmp_path / "huge.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b'[{"text": "fine", "label": "a"}, {"text": "')
        for _ in range(200):
            stream.write(b"x" * 1_000_000)
        stream.write(b'", "label": "a"}]')
    tracemalloc.start()
    problem = problems_of(path)[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (problem["code"], problem["row"]) == ("line_too_long", 2)
    assert peak < 16 << 20


def test_an_array_beyond_the_limit_is_refused(write_bytes, problems_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_FILE_BYTES", 1000)
    assert problems_of(write_bytes(json.dumps(balanced(100)).encode(), "d.json"))[0]["code"] == "too_large"
    monkeypatch.setattr(jsonl, "MAX_FILE_BYTES", limits.MAX_FILE_BYTES)
    monkeypatch.setattr("onboard.data.rows.MAX_ROWS", 10)
    assert problems_of(write_bytes(json.dumps(balanced(100)).encode(), "d.json"))[0]["code"] == "too_many_rows"
