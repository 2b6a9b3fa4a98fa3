"""Examples of a dataset's warnings are told in words: what the checks really find, and what is of no form we know."""

from __future__ import annotations

from pathlib import Path

import pytest

from onboard.data.read import ReadOptions, read_dataset
from onboard.report.html import render
from onboard.report.warned import dataset_warnings, in_words


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Training rows of which some are the same, some disagree, and one is a test row too."""
    train = ["a fine day,good"] * 3 + ["it rains,good", "it rains,bad"]
    train += [f"row number {number},{'good' if number % 2 else 'bad'}" for number in range(40)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *train]) + "\n", encoding="utf-8")
    test = "text,label\nrow number 1,good\nrow number 0,bad\nan end,bad\na start,good\n"
    (tmp_path / "test.csv").write_text(test, encoding="utf-8")
    return tmp_path


def test_what_the_checks_find_is_told_in_words(rows: Path, document) -> None:
    report = read_dataset(rows / "train.csv", ReadOptions(test=rows / "test.csv")).report.to_json()
    warnings = {warning["code"]: in_words(warning["examples"][0]) for warning in report["warnings"]
                if warning["examples"]}  # fmt: skip
    assert warnings["exact_duplicates"] == "“a fine day”, labeled good, is train rows 1, 2 and 3."
    assert warnings["conflicting_labels"] == "“it rains” is train rows 4 and 5, labeled good and bad."
    assert warnings["shared_rows"] == "“row number 1”, labeled good, is test row 1 and train row 7."
    document["dataset"]["warnings"] = report["warnings"]
    page = render(document)
    assert "“row number 1”, labeled good, is test row 1 and train row 7." in page
    assert "{&#39;" not in page
    assert "[&#39;" not in page


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ({"label": "rare", "rows": 1}, "rare: 1 row"),
        ({"labels": ["Good", "good"], "rows": [30, 1]}, "Good (30 rows) and good (1 row)"),
        ({"label": "J4.51", "words": "j 4 51"}, "J4.51 is “j 4 51” to the base."),
        ({"text": "It was …", "tokens": 600}, "“It was …” has 600 tokens."),
        ({"row": 3, "text": "a", "label": 0, "likelier": 1}, "Row 3, “a”, is labeled 0; 1 looks more likely."),
        ({"text": "a", "label": True, "likelier": False}, "“a” is labeled true; false looks more likely."),
        ({"split": "train", "row": 1, "text": "a", "label": "b", "rows": list(range(1, 2001))},
         "“a”, labeled b, is train rows 1, 2, 3, 4, 5 and 1,995 more."),
        ({"row": 12}, "row: 12"),
        ({"seen_in": {"split": "train", "rows": [1, 2]}, "is": None}, "seen in: split train rows 1 and 2, is: "),
        ({"labels": 3, "rows": None}, ""),
        ({"split": None, "row": None, "text": None, "label": None, "also_in": 3}, "“”, labeled , is  row  and  row ."),
    ],
)  # fmt: skip
def test_every_form_has_its_words(example: dict[str, object], words: str) -> None:
    assert in_words(example) == words


def test_warnings_of_another_form_are_passed_over() -> None:
    assert dataset_warnings({"warnings": [None, 3, {"message": None, "examples": {}}]})[0].examples == []
