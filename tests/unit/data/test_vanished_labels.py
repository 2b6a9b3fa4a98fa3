"""A label whose only rows were dropped is not among the answers."""

from __future__ import annotations

import json
from pathlib import Path

from onboard.data.read import ReadOptions, read_dataset


def written(path: Path, *rows: tuple[str, str]) -> Path:
    path.write_text(
        "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows), encoding="utf-8"
    )
    return path


def test_a_label_whose_only_row_was_dropped_is_no_answer(tmp_path: Path) -> None:
    rows = [(f"Text {number}.", "ab"[number % 2]) for number in range(30)]
    path = written(tmp_path / "rows.jsonl", *rows, ("Odd one.", "c"), ("odd  one.", "a"))
    test = written(tmp_path / "test.jsonl", ("Other.", "a"), ("Another.", "c"))
    checked = read_dataset(path, ReadOptions(test=test))
    assert checked.dataset.labels == ("a", "b")
    assert [row.label for row in checked.dataset.test] == ["a"]
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "vanished_labels"]
    assert finding.message.startswith('The label "c" has no training row left, so no answer has it. 1 row of other')
    assert [label.label for label in checked.report.labels] == ["a", "b"]


def test_a_declared_label_set_stays(tmp_path: Path) -> None:
    rows = [(f"Text {number}.", "ab"[number % 2]) for number in range(8)]
    checked = read_dataset(written(tmp_path / "rows.jsonl", *rows), ReadOptions(labels=("a", "b", "c")))
    assert checked.dataset.labels == ("a", "b", "c")
