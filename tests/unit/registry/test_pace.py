"""The time estimate of a check learns from what the last jobs here took."""

from __future__ import annotations

from typing import Any

import pytest

from onboard.domain.submission import Submission
from onboard.jobs.estimate import START_SECONDS, DatasetSize, estimate_seconds
from onboard.jobs.pace import Pace, pace_of_jobs
from onboard.jobs.submission import check
from onboard.registry.job_figures import TimedJob

REPORT: dict[str, Any] = {
    "rows": {"train": 32, "validation": 0, "test": 0},
    "characters": {"mean": 60.0},
    "validation": {"held_out": 0},
}


def timed(times: float, report: dict[str, Any] | None = None, **more: float) -> TimedJob:
    """A job that took so many times as long as a laptop would have taken."""
    size = DatasetSize.of_report(REPORT)
    assert size is not None
    work = (estimate_seconds(size, tuned="guard" in more) - START_SECONDS) * times
    left = work - sum(more.values())
    return TimedJob("default", None, "auto", {"probe": left / 2, "train": left / 2, **more}, report or REPORT)


def test_the_median_of_the_last_eight_jobs_sets_the_pace() -> None:
    jobs = [timed(4.0), timed(3.0), timed(5.0), timed(90.0), *[timed(4.0)] * 4, *[timed(1.0)] * 20]
    assert pace_of_jobs(jobs) == Pace(pytest.approx(4.0), 8)
    assert pace_of_jobs([timed(3.0, guard=20.0)]).factor == pytest.approx(3.0)  # a tuned job is held against tuning


def test_without_jobs_of_a_known_size_it_is_that_of_a_laptop() -> None:
    unknown = timed(4.0, {"rows": None, "characters": None, "validation": None})
    stopped_early = TimedJob("default", None, "never", {"train": 0.5}, REPORT)  # after the readout
    assert pace_of_jobs([unknown, stopped_early]) == Pace()
    assert Pace().basis == "on a laptop"
    assert Pace(2.0, 1).basis == "by the last job here"


def test_a_check_tells_the_time_at_this_pace(tmp_path: Any) -> None:
    path = tmp_path / "mood.jsonl"
    path.write_text("".join(f'{{"text": "Text {n}.", "label": "{n % 2}"}}\n' for n in range(32)), encoding="utf-8")
    laptop, here = (check(Submission(path), "mini", pace=pace) for pace in (None, Pace(5.0, 3)))
    work = [report["estimated_seconds"] - START_SECONDS for report in (laptop, here)]
    assert work[1] == pytest.approx(5 * work[0], abs=5)
    assert (laptop["estimate_basis"], here["estimate_basis"]) == ("on a laptop", "by the last 3 jobs here")
