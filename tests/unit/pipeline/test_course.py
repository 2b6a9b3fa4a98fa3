"""How far a stage is, and how long it still takes, in its log."""

from __future__ import annotations

from typing import Any

import pytest

from onboard.errors import CancelledError
from onboard.pipeline import course
from onboard.pipeline.course import Course


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the time is, in its only place."""
    now = [100.0]
    monkeypatch.setattr(course.time, "monotonic", lambda: now[0])
    return now


def test_every_tenth_step_is_told_with_the_time_left_of_all_parts(clock: list[float]) -> None:
    notes: list[tuple[str, dict[str, Any]]] = []
    way = Course(lambda message, **numbers: notes.append((message, numbers)), lambda: None, 40)
    for part in ("tune", "tune fold 1 of 1"):
        on_step = way.part(part, 20)
        for step in range(1, 21):
            clock[0] += 0.5
            on_step(step, 0.25)
    assert notes == [
        ("tune step 10/20, about 15 s left in this stage", {"loss": 0.25}),
        ("tune step 20/20, about 10 s left in this stage", {"loss": 0.25}),
        ("tune fold 1 of 1 step 10/20, about 5.0 s left in this stage", {"loss": 0.25}),
        ("tune fold 1 of 1 step 20/20", {"loss": 0.25}),
    ]


def test_what_has_no_steps_is_told_once_in_a_while(clock: list[float]) -> None:
    notes: list[str] = []
    way = Course(notes.append, lambda: None, 10.0)
    for done in range(1, 11):
        clock[0] += 3.0
        way.reached(float(done), f"{done} of 10")
    assert notes == [
        "2 of 10, about 24 s left in this stage", "4 of 10, about 18 s left in this stage",
        "6 of 10, about 12 s left in this stage", "8 of 10, about 6.0 s left in this stage", "10 of 10",
    ]  # fmt: skip


def test_a_stage_that_is_to_stop_stops_at_its_next_step() -> None:
    def stop() -> None:
        raise CancelledError("It was cancelled.")

    way = Course(lambda *_, **__: None, stop, 10)
    with pytest.raises(CancelledError):
        way.part("train", 10)(1, 0.5)
    with pytest.raises(CancelledError):
        way.reached(1.0, "probe")
