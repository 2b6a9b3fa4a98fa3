"""Percentiles, rates, forecasts and the words for them, computed by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onboard.contract.operations import RecentFigures
from onboard.domain.figures import NO_SAMPLE, Ended
from onboard.domain.forecast import JobTraits, Timing, similar, starts_in, time_left
from onboard.domain.job import JobState, Stage
from onboard.domain.moment import rough_text, seconds_text
from onboard.domain.waiting import NextAttempt, Waiting

LIKE = JobTraits("default", "sha256:base", "never")
STAGES = {Stage.CHECK: 1.0, Stage.PROBE: 10.0, Stage.TRAIN: 20.0, Stage.PUBLISH: 2.0}


def test_a_window_of_less_than_an_hour_tells_the_rate_of_an_hour() -> None:
    ended = Ended(900.0, {JobState.SUCCEEDED: 3}, last_hour=3, retries=0, wait=NO_SAMPLE, run=NO_SAMPLE)
    assert (ended.per_hour, replace(ended, window_seconds=86_400.0).per_hour) == (12.0, 3.0)


def test_nothing_ended_is_no_figure_rather_than_zero() -> None:
    figures = RecentFigures.of_ended(Ended.nothing(3600.0)).to_json()
    assert (figures["ended"], figures["ended_per_hour"], figures["dead"]) == (0, 0.0, 0)
    assert (figures["wait_p50_seconds"], figures["run_p95_seconds"]) == (None, None)


def test_the_time_left_is_the_rest_of_the_stage_and_the_stages_after_it() -> None:
    left = time_left(Stage.PROBE, 4.0, None, [Timing(LIKE, None, STAGES)])
    assert (left.seconds, left.basis) == (6.0 + 20.0 + 2.0, "1 similar job")
    assert time_left(None, 0.0, None, [Timing(LIKE, None, STAGES)]).seconds == 33.0


def test_the_median_of_similar_jobs_counts_scaled_to_the_size_of_the_dataset() -> None:
    timings = [
        Timing(LIKE, 1.0, {Stage.TRAIN: 10.0, Stage.PUBLISH: 2.0}),
        Timing(LIKE, 2.0, {Stage.TRAIN: 24.0, Stage.PUBLISH: 2.0}),
        Timing(LIKE, 1.0, {Stage.TRAIN: 99.0, Stage.PUBLISH: 2.0}),
    ]
    left = time_left(Stage.TRAIN, 5.0, 2.0, timings)  # train: the median of 20, 24 and 198; publishing does not grow
    assert (left.seconds, left.basis) == (24.0 - 5.0 + 2.0, "3 similar jobs")


def test_tuning_and_its_guard_take_as_long_for_a_small_dataset_as_for_a_large_one() -> None:
    timings = [Timing(LIKE, 1.0, {Stage.TUNE: 8.0, Stage.GUARD: 6.0, Stage.EVALUATE: 3.0, Stage.PUBLISH: 2.0})]
    assert time_left(Stage.TUNE, 3.0, 2.0, timings).seconds == (8.0 - 3.0) + 6.0 + 2 * 3.0 + 2.0


@pytest.mark.parametrize(
    ("stage", "spent", "timings", "reason"),
    [
        (Stage.TRAIN, 1.0, [], "no similar job has succeeded lately"),
        (Stage.TRAIN, 20.5, [Timing(LIKE, None, STAGES)], "train takes longer than it did for 1 similar job"),
        (Stage.TUNE, 1.0, [Timing(LIKE, None, STAGES)], "no similar job went through tune"),
    ],
)
def test_what_is_not_known_is_not_invented(stage: Stage, spent: float, timings: list[Timing], reason: str) -> None:
    left = time_left(stage, spent, None, timings)
    assert (left.seconds, left.basis) == (None, reason)


def test_only_jobs_of_the_same_queue_base_and_tuning_are_similar() -> None:
    other = [
        JobTraits("gpu", LIKE.base, "never"),
        JobTraits("default", "x", "never"),
        JobTraits("default", LIKE.base, "auto"),
    ]
    timings = [Timing(traits, 1.0, STAGES) for traits in (LIKE, *other)] + [Timing(LIKE, None, STAGES)]
    assert similar(LIKE, 3.0, timings) == [timings[0]]
    assert similar(LIKE, None, timings) == [timings[-1]]


@pytest.mark.parametrize(
    ("ahead", "free", "run", "expected"),
    [
        (0, [0.0], None, 0.0),  # a worker is idle
        (0, [12.0, 5.0], None, 5.0),  # the first that is done takes it
        (3, [12.0, 5.0], 10.0, 22.0),  # taken at 5, 12 and 15; workers are free again at 22 and 25
        (1, [0.0], 10.0, 10.0),
        (1, [0.0, 0.0, 30.0], None, 0.0),  # two are idle, one is ahead
        (1, [5.0], None, None),  # nobody knows how long a job takes
        (0, [None], 10.0, None),  # nobody knows when the running one ends
        (0, [None, 0.0], 10.0, 0.0),
        (0, [], 10.0, None),
    ],
)
def test_the_start_of_a_queued_job_is_forecast(
    ahead: int, free: list[float | None], run: float | None, expected: float | None
) -> None:
    assert starts_in(ahead, free, run) == expected


@pytest.mark.parametrize(
    ("waiting", "message", "remedy"),
    [
        (Waiting("gpu-large", 3, False, 0), "3 ahead, no worker on gpu-large", "onboard worker --queue gpu-large"),
        (
            Waiting("default", 0, True, 1),
            "next in line, the queue default is paused",
            "onboard queue resume default",
        ),
        (Waiting("default", 0, False, 2, starts_in_seconds=0.0), "next in line, a worker on default is free", ""),
        (
            Waiting("default", 1200, False, 2, starts_in_seconds=200.0),
            "1,200 ahead, 2 workers on default, starts in about 3 min 20 s",
            "",
        ),
        (Waiting("default", 1, False, 1), "1 ahead, 1 worker on default, start not known", ""),
        (
            Waiting("default", 0, False, 1, retry=NextAttempt(0.0, 20.4, 2, 3, "The hub cannot be reached.")),
            "next in line, tries again in 20 s (attempt 2 of 3) after: The hub cannot be reached.",
            "",
        ),
        (
            Waiting("default", 0, False, 0, outdated_workers=2),
            "next in line, no worker on default has the release that submitted it, or a later one",
            "Install this version of onboard where the workers are.",
        ),
    ],
)
def test_a_wait_is_explained_with_what_ends_it(waiting: Waiting, message: str, remedy: str) -> None:
    assert (waiting.message, waiting.remedy) == (message, remedy)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min"), (200, "3 min 20 s"), (3599.7, "1 h"),
        (86_400, "24 h"), (2 * 86_400 + 3 * 3600, "2 d 3 h"), (7 * 86_400, "7 d"),
    ],
)  # fmt: skip
def test_durations_have_two_parts_at_most(seconds: float, expected: str) -> None:
    assert seconds_text(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.04, "0.0 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1.0 min"), (200, "3.3 min"), (3560, "59 min"),
        (3599, "1.0 h"), (86_400, "24 h"), (172_700, "2.0 d"), (3e7, "347 d"),
    ],
)  # fmt: skip
def test_a_duration_in_two_digits(seconds: float, expected: str) -> None:
    assert rough_text(seconds) == expected
