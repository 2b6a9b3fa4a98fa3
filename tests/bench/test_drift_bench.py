"""The bench of drift: what it counts as an alarm, and what its page says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.drift.page import markdown
from bench.drift.weeks import NEVER, Served, texts_until_alarm
from onboard.statistics.drift import Sums, Training, sums_of_features
from onboard.statistics.readout import Readout

WIDTH = 8


@pytest.fixture
def version() -> Served:
    rng = np.random.default_rng(0)
    readout = Readout(rng.standard_normal((2, WIDTH)).astype(np.float16), 1.0, np.zeros(2, np.float32), 1.0)
    sums = sums_of_features(rng.standard_normal((100, WIDTH)), 2)
    return Served(readout, None, Training(sums, held_out=False), WIDTH)


def week(seed: int, at: float = 0.0, n: int = 400) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((n, WIDTH)) + at).astype(np.float32)


def test_texts_are_counted_to_the_first_look_that_is_an_alarm(version: Served) -> None:
    assert texts_until_alarm(version, week(1), None) == NEVER
    assert texts_until_alarm(version, week(2, at=3.0), None) == 62
    late = np.concatenate([week(3)[:130], week(4, at=3.0)])
    found: dict[str, int] = {}
    assert texts_until_alarm(version, late, None, found) == 250
    assert "features, training" in found
    before: Sums = version.sums(week(5))
    assert texts_until_alarm(version, week(6), before) == NEVER


def line(**counts: int) -> dict[str, Any]:
    return {"task": "mood", "other": "tone", "rows": 32, "draw": 0, "order": 0, "false": {}, **counts}


@pytest.mark.parametrize(("first", "verdict"), [(NEVER, "met"), (125, "**not met**")])
def test_the_page_judges_what_was_wanted(first: int, verdict: str) -> None:
    document = {
        "command": "python -m bench.drift", "machine": {"cores": 2, "processor": "a CPU"}, "week": 1000,
        "lines": [line(first=first, second=NEVER, new_first=250, new_second=125)] * 3,
        "serving": [{"texts": 1, "off": 2.0, "on": 2.02, "overhead": 1.0, "low": 0.4, "high": 1.7, "rounds": 3}],
    }  # fmt: skip
    page = markdown(document).splitlines()
    (false,) = (row for row in page if row.startswith("| alarm in at most"))
    assert false.endswith(f"| {verdict} |")
    assert "| at most 3% overhead on serving | +1.0% at worst | met |" in page
    assert "| 1 | 7.81 | 7.89 | +1.0% (+0.4 to +1.7) | 3 |" in page
    assert any(row.startswith("| mood | tone | 100.0% (") and row.endswith(") of 3 | 125 |") for row in page)
