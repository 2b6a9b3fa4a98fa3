"""Files that people brought, where they are at hand: each is read, or told, as its list says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from onboard.errors import OnboardError

CASES = Path(__file__).parents[3] / "shared" / "cases"
pytestmark = pytest.mark.skipif(
    not CASES.is_dir(), reason="the files that people brought are not here (../shared/cases)"
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
    "near_identical_labels", "numeric_labels", "rejected_rows", "crowded_bucket", "conflicting_labels",
}  # fmt: skip


def checked(words: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(CASES)
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


def test_files_that_were_brought_are_all_looked_at() -> None:
    named = {word for words, *_ in [*REFUSED, *READ] for word in words.split() if "." in word}
    assert named | {"README.md"} >= {path.name for path in CASES.iterdir()}
