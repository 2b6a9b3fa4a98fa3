"""Files as spreadsheets and labelling tools write them: read where what is meant is clear, else one error."""

from __future__ import annotations

import gzip
import json

import pytest
from dataset_rows import balanced, peak_of, with_200_mb

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
    before, after = b'[{"text": "fine", "label": "a"}, {"text": "', b'", "label": "a"}]'
    path = with_200_mb(tmp_path / "huge.json.gz", before, after)
    (problem, *_), peak = peak_of(lambda: problems_of(path))
    assert (problem["code"], problem["row"]) == ("line_too_long", 2)
    assert peak < 16 << 20


def test_an_array_beyond_the_limit_is_refused(write_bytes, problems_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_FILE_BYTES", 1000)
    assert problems_of(write_bytes(json.dumps(balanced(100)).encode(), "d.json"))[0]["code"] == "too_large"
    monkeypatch.setattr(jsonl, "MAX_FILE_BYTES", limits.MAX_FILE_BYTES)
    monkeypatch.setattr("onboard.data.rows.MAX_ROWS", 10)
    assert problems_of(write_bytes(json.dumps(balanced(100)).encode(), "d.json"))[0]["code"] == "too_many_rows"


def texts(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"text": text, "label": label} for text, label in pairs]


@pytest.mark.parametrize(
    "other", ["WELL done", " well\u00a0done ", "well  done", "we\u200bll done", "well\u00ad done\ufeff"]
)
def test_one_text_under_two_labels_is_a_conflict_however_it_is_written(other, write_jsonl, problems_of) -> None:
    (problem,) = problems_of(write_jsonl(texts(("well done", "good"), (other, "bad"), ("bad one", "bad"))))
    assert problem["code"] == "conflicting_labels"


def test_few_conflicts_are_dropped_and_what_is_written_otherwise_under_one_label_stays(
    write_jsonl, read, warning_of
) -> None:
    rows = [*balanced(40), *texts(("Odd", "good"), ("odd", "bad"), ("Even", "good"), ("even", "good"))]
    path = write_jsonl(rows)
    assert warning_of("conflicting_labels", path).count == 2
    assert {row.text_a for row in read(path).dataset.train} >= {"Even", "even"}


def test_a_split_has_no_text_that_differs_by_what_nobody_sees(write_jsonl, read) -> None:
    test = write_jsonl(texts(("sentence num\u200bber 3", "bad"), ("another", "good")), "test.jsonl")
    assert [row.text_a for row in read(write_jsonl(balanced()), test=test).dataset.test] == ["another"]


@pytest.mark.parametrize("text", ["\u200b", " \ufeff\u2060 ", "\u3164"])
def test_a_text_of_what_nobody_sees_is_empty(text, write_jsonl, problems_of) -> None:
    (problem,) = problems_of(write_jsonl([*balanced(4), *texts((text, "good"))]))
    assert (problem["code"], problem["row"]) == ("empty_text", 5)
    assert "U+" in problem["message"]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("1", "1.0", True),
        ("0", "-0.0", True),
        ("good", "go\u200bod", True),
        ("e-mail", "e\u00admail", True),
        ("1.0", "10", False),
        ("J4.51", "J45.1", False),
        ("1,5", "15", False),
        ("v1.0", "v10", False),
        ("a.b", "ab", True),
    ],
)
def test_labels_are_alike_as_people_and_numbers_are(one, other, alike, write_jsonl, read) -> None:
    checked = read(write_jsonl(balanced(labels=(one, other))))
    assert ("near_identical_labels" in {finding.code for finding in checked.report.warnings}) == alike


def test_a_label_with_what_nobody_sees_takes_no_words_from_the_clean_one(write_jsonl, read, warning_of) -> None:
    path = write_jsonl(balanced(labels=("go\u200bod", "good", "bad")))
    words = {label.label: label.word for label in read(path).report.labels}
    assert words == {"good": "good", "go\u200bod": "good 2", "bad": "bad"}
    assert "U+200B" in warning_of("near_identical_labels", path).message


@pytest.mark.parametrize(
    ("labels", "what"),
    [([f"{i},5" for i in range(8)], "comma"), (list(range(21)), "integers"), ([str(i) for i in range(21)], "integers")],
)
def test_numbers_that_may_be_a_scale_are_hinted_at(labels, what, write_jsonl, warning_of) -> None:
    finding = warning_of("numeric_labels", write_jsonl(balanced(3 * len(labels), tuple(labels))))
    assert what in finding.message
    assert "--kind regression" in finding.remedy


def test_a_few_integers_are_classes_without_a_word(write_jsonl, read) -> None:
    report = read(write_jsonl(balanced(60, tuple(range(20))))).report
    assert "numeric_labels" not in {finding.code for finding in report.warnings}


def test_values_that_share_a_bucket_for_one_far_off_are_told(write_jsonl, read, warning_of) -> None:
    rows = [{"text": f"text {i}", "label": 1 + i / 10} for i in range(40)]
    assert not read(write_jsonl(rows, "even.jsonl")).report.warnings
    finding = warning_of("crowded_bucket", write_jsonl([*rows, {"text": "far", "label": 9999.5}]))
    assert "40 of 41" in finding.message


def test_labels_of_another_type_are_told_by_their_types(write_jsonl, write_bytes, problems_of) -> None:
    test = write_bytes(b"text,label\na,1\nb,0\n", "test.csv")
    for options in ({}, {"unknown_labels": "drop"}):
        problems = problems_of(write_jsonl(balanced(labels=(0, 1))), test=test, **options)
        assert [problem["code"] for problem in problems] == ["unknown_label"] * 2
        assert '"1" (1 row) is text, the label 1 a number' in problems[0]["message"]
        assert "--unknown-labels" not in problems[0]["remedy"]


def test_rows_of_unknown_labels_are_dropped_where_that_is_asked_for(write_jsonl, read, problems_of, warning_of) -> None:
    path, odd = write_jsonl(balanced()), texts(("a", "good"), ("b", "odd"), ("c", "odder"), ("d", "odd"))
    test = write_jsonl(odd, "test.jsonl")
    problem = problems_of(path, test=test)[0]
    assert problem["code"] == "unknown_label"
    assert "--unknown-labels drop" in problem["remedy"]
    checked = read(path, test=test, unknown_labels="drop")
    assert [row.text_a for row in checked.dataset.test] == ["a"]
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "unknown_labels"]
    assert (finding.count, "3 rows of the test split" in finding.message) == (3, True)


def test_what_an_annotator_rejected_is_not_trained_as_accepted(write_jsonl, write_bytes, read) -> None:
    answers = ("accept", "reject", "ignore")
    rows = [{**row, "_input_hash": i, "answer": answers[i % 3]} for i, row in enumerate(balanced(30))]
    lines = "".join(f"{row['text']},{row['label']},{row['_input_hash']},{row['answer']}\n" for row in rows)
    table = write_bytes(("text,label,_input_hash,answer\n" + lines).encode(), "d.csv")
    for path in (write_jsonl(rows), table):
        checked = read(path)
        assert len(checked.dataset.train) == 10
        assert [(finding.code, finding.count) for finding in checked.report.warnings] == [("rejected_rows", 20)]


def test_a_column_called_answer_of_somebody_elses_leaves_nothing_out(write_jsonl, read) -> None:
    rows = [{**row, "answer": "reject"} for row in balanced()]
    assert len(read(write_jsonl(rows)).dataset.train) == 20
    assert len(read(write_jsonl(rows, "again.jsonl"), label_field="label").dataset.train) == 20


def test_a_file_of_rejected_rows_has_none(write_jsonl, problems_of) -> None:
    rows = [{**row, "_task_hash": 1, "answer": "ignore"} for row in balanced()]
    (problem,) = problems_of(write_jsonl(rows))
    assert (problem["code"], "rejected" in problem["message"]) == ("empty_file", True)
