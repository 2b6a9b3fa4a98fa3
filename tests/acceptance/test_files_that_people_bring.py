"""Files that people brought, where they are at hand: each is read, or told, as its list says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.prediction_files import read_inputs, write_answers
from onboard.errors import OnboardError
from onboard.serving.bulk.asked import BulkQuestion
from onboard.serving.bulk.inputs import inputs_of
from onboard.serving.bulk.plan import make_plan

CASES = Path(__file__).parents[3] / "shared" / "cases"
MORE_CASES = CASES.with_name("more_cases")
pytestmark = pytest.mark.skipif(
    not (CASES.is_dir() and MORE_CASES.is_dir()),
    reason="the files that people brought are not here (../shared/cases, ../shared/more_cases)",
)

REFUSED = [
    ("cr_line_ends.csv", ["line_ends"]),
    ("semicolon_header_with_comma.csv", ["separator"]),
    ("header_quote_then_blank.csv", ["bad_csv"]),
    ("header_unclosed_quote.csv", ["bad_csv"]),
    ("conflict_by_case.jsonl", ["conflicting_labels"]),
    ("conflict_by_nbsp.jsonl", ["conflicting_labels"]),
    ("text_of_zero_width.jsonl", ["empty_text"] * 3),
    ("book.xlsx", ["unknown_format"]),
    ("reviews.txt", ["unknown_format"]),
    ("ints.jsonl --test ints-test.csv", ["unknown_label"] * 2),
]
READ = [
    ("semicolon_comma_in_header.csv --task t --text-field", 3, set()),
    ("excel_sep_line.csv", 24, set()),
    ("numbers_as_text_two_ways.csv", 24, {"near_identical_labels"}),
    ("versions_not_alike.csv", 24, set()),
    ("decimal_comma.csv", 60, {"numeric_labels"}),
    ("integer_scores.csv", 80, {"numeric_labels"}),
    ("labels_zero_width.csv", 24, {"near_identical_labels"}),
    ("labels_soft_hyphen.csv", 24, {"near_identical_labels"}),
    ("array.json", 24, set()),
    ("label_studio.json", 24, set()),
    ("label_studio_min.json", 24, set()),
    ("prodigy_binary.jsonl", 12, {"rejected_rows"}),
    ("regression_outlier.jsonl", 48, {"crowded_bucket"}),
    ("imbalanced.jsonl --test imbalanced-test.jsonl", None, set()),
]
SOUGHT = {
    "near_identical_labels", "numeric_labels", "rejected_rows", "crowded_bucket", "conflicting_labels", "empty_files",
    "blank_rows", "mixed_label_types", "disagreeing_annotators",
}  # fmt: skip
MORE_REFUSED = [
    ("header-repeated.csv", ["repeated_header"]),
    ("utf32-said-to-be-utf16.csv", ["not_utf8"]),
    ("git-lfs-pointer.csv", ["git_lfs_pointer"]),
]
MORE_READ = [
    ("empty-shard", None, {"empty_files"}),
    ("empty-shard-csv", None, {"empty_files"}),
    ("shards-text-and-int-labels", None, {"mixed_label_types"}),
    ("label-after-comma-blank.csv --test label-after-comma-blank-test.csv", 25, set()),
    ("label-two-apostrophes.csv", 24, {"near_identical_labels"}),
    ("label-two-hyphens.csv", 24, {"near_identical_labels"}),
    ("label-decimal-comma-and-point.csv", 24, {"near_identical_labels"}),
    ("excel-blank-rows.csv", 24, {"blank_rows"}),
    ("doccano-1.5-key-data.jsonl", 24, set()),
    ("prodigy-without-hashes.jsonl", 20, {"rejected_rows"}),
    ("argilla1-discarded-rows.jsonl", 20, {"rejected_rows"}),
    ("labelstudio-ground-truth.json", 24, set()),
]
PREDICTED = ["predict-two-columns-of-one-name.csv", "predict-half-surrogate-column.jsonl"]


def checked(words: str, monkeypatch: pytest.MonkeyPatch, cases: Path = CASES) -> dict[str, Any]:
    monkeypatch.chdir(cases)
    arguments = words.split()
    if arguments[-1] == "--text-field":
        arguments.append("Kommentar, frei")
    if "." in arguments[0] and "--task" not in arguments and arguments[0].endswith(("sv", "jsonl", "json")):
        arguments += ["--task", "brought"]
    result = CliRunner().invoke(app, ["check", *arguments, "--json"])
    if isinstance(result.exception, OnboardError):
        raise result.exception
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize(("words", "codes"), REFUSED)
def test_what_cannot_be_read_is_told_in_few_words(
    words: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OnboardError) as refused:
        checked(words, monkeypatch)
    assert refused.value.exit_code == 2
    assert [problem["code"] for problem in refused.value.data["problems"]] == codes


@pytest.mark.parametrize(("words", "rows", "codes"), READ)
def test_what_can_be_read_is_read(
    words: str, rows: int | None, codes: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = checked(words, monkeypatch)
    assert rows is None or report["rows"]["train"] + report["rows"]["test"] == rows
    assert {warning["code"] for warning in report["warnings"]} & SOUGHT == codes


def test_clean_labels_keep_their_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("labels_zero_width.csv", "labels_soft_hyphen.csv"):
        report = checked(name, monkeypatch)
        own = {label["label"]: label["word"] for label in report["labels"] if label["label"].isascii()}
        assert own == {label: label for label in own}
        (warning,) = [finding for finding in report["warnings"] if finding["code"] == "near_identical_labels"]
        assert "U+" in warning["message"]


@pytest.mark.parametrize(("words", "codes"), MORE_REFUSED)
def test_what_else_cannot_be_read_is_told_in_few_words(
    words: str, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OnboardError) as refused:
        checked(words, monkeypatch, MORE_CASES)
    assert refused.value.exit_code == 2
    assert [problem["code"] for problem in refused.value.data["problems"]] == codes
    if words.startswith("utf32"):
        assert "UTF-32" in refused.value.message
        assert "iconv -f UTF-32" in refused.value.remedy
    if words.startswith("git"):
        assert "git lfs pull" in refused.value.remedy


@pytest.mark.parametrize(("words", "rows", "codes"), MORE_READ)
def test_what_else_can_be_read_is_read(
    words: str, rows: int | None, codes: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = checked(words, monkeypatch, MORE_CASES)
    assert rows is None or report["rows"]["train"] + report["rows"]["test"] == rows
    assert {warning["code"] for warning in report["warnings"]} & SOUGHT == codes
    said = " ".join(warning["message"] for warning in report["warnings"])
    if "near_identical_labels" in codes and "comma" not in words:
        assert "U+" in said
    if codes == {"mixed_label_types"}:
        assert all(part in said for part in ("strings", "integers", "00000-of-00002", "00001-of-00002"))
    if "ground-truth" in words:
        assert {label["label"]: label["train"] for label in report["labels"]} == {"Positive": 12, "Negative": 12}


def test_every_column_of_a_file_to_predict_is_in_the_output(tmp_path: Path) -> None:
    (row,) = read_inputs(MORE_CASES / PREDICTED[0], ())
    write_answers([{"label": "a"}], tmp_path / "x.csv", [row.given])
    assert list(csv.reader(io.StringIO((tmp_path / "x.csv").read_text()))) == [
        ["text", "a", "a_2", "label"],
        ["good film", "1", "2", "a"],
    ]


def test_half_a_surrogate_in_a_column_leaves_a_whole_output_or_an_error(tmp_path: Path) -> None:
    rows = read_inputs(MORE_CASES / PREDICTED[1], ())
    write_answers([{"label": "a"}] * len(rows), tmp_path / "x.csv", [row.given for row in rows])
    assert len(list(csv.reader(io.StringIO((tmp_path / "x.csv").read_text())))) == 3


@pytest.mark.parametrize("folder", ["empty-shard", "empty-shard-csv"])
def test_a_folder_with_an_empty_shard_is_planned_for_predictions(folder: str) -> None:
    plan = make_plan(BulkQuestion(("mood",), ("mood@v1",)), inputs_of(str(MORE_CASES / folder)))
    assert [file.rows > 0 for file in plan.files].count(False) == 1
    assert plan.rows == sum(shard.rows for shard in plan.shards) > 0


def test_files_that_were_brought_are_all_looked_at() -> None:
    named = {word for words, *_ in [*REFUSED, *READ] for word in words.split() if "." in word}
    assert named | {"README.md"} >= {path.name for path in CASES.iterdir()}
    more = {word for words, *_ in [*MORE_REFUSED, *MORE_READ] for word in words.split()} | set(PREDICTED)
    assert more | {"README.md"} >= {path.name for path in MORE_CASES.iterdir()}
