"""The measurement of a large upload: valid rows of the size that was asked for, and a verdict that can be red."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import upload
from onboard.data.read import ReadOptions, read_dataset


def test_its_rows_are_valid_none_of_them_twice_and_as_many_bytes_as_asked(tmp_path: Path) -> None:
    rows = upload.Rows(30_000)
    head, *pieces, tail = rows.body()
    content = b"".join(pieces)
    assert (head.count(b'name="dataset"'), tail) == (1, b"\r\n--rows--\r\n")
    assert len(content) >= 30_000
    (tmp_path / "uploaded.jsonl").write_bytes(content)
    report = read_dataset(tmp_path / "uploaded.jsonl", ReadOptions(suspects=False)).report
    assert report.rows["train"] == rows.count
    assert {finding.code for finding in report.warnings} <= {"near_identical_labels"}


def test_a_gigabyte_stays_below_the_limit_of_rows() -> None:
    row = len(upload.Rows(1000 * 10**6)._row())
    assert 1000 * 10**6 / row < upload.MAX_ROWS


@pytest.mark.parametrize(("growth", "code"), [(50.0, 0), (50.1, 1)])
def test_it_fails_when_the_server_grew_by_more_than_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, growth: float, code: int
) -> None:
    figures: dict[str, Any] = {
        "rows": 9, "seconds": {"sent": 1.0, "answered": 2.0}, "server_growth_mib": growth, "children_peak_mib": 9.0,
        "resident_bytes": {"before": 1 << 20, "server": 2 << 20, "children": 9 << 20},
    }  # fmt: skip
    monkeypatch.setattr(upload, "measure", lambda folder, size: figures)
    output, table = tmp_path / "upload.json", tmp_path / "upload.md"
    assert upload.main(["--megabytes", "7", "--output", str(output), "--table", str(table)]) == code
    assert json.loads(output.read_text())["kept"] is (code == 0)
    assert f"| its growth at most | {growth} | ≤ 50 |" in table.read_text()
