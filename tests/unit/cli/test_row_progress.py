"""How far a prediction of many rows is, where no terminal shows a bar."""

from __future__ import annotations

import pytest

from cli.row_progress import LINE_SECONDS, RowProgress


def test_a_line_now_and_then_says_how_far_it_is_how_fast_and_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    progress = RowProgress(clock=lambda: now[0])
    progress.begin(20_000)
    progress.add(5_000)  # found there: they say nothing of the rate
    for _ in range(4):
        now[0] += LINE_SECONDS / 2
        progress.add(250)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "5,500 of 20,000 rows, 100 rows/s, about 2 min 25 s left",
        "6,000 of 20,000 rows, 100 rows/s, about 2 min 20 s left",
    ]
