"""Numbers about texts in the registry: several processes add to one day, and a deleted task leaves none."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.registry_samples import BASE, register_sample_base, sample_task, sample_version

from onboard.domain.descent import Root
from onboard.domain.drift import added, date_of, day_of, days_of, monday_of, together, week_of
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.deleting import DeletingRepository
from onboard.registry.drift import DriftRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.versions import VersionRepository

COLOURS = ("colours", 1)


def numbers(texts: int) -> dict[str, Any]:
    return {"answered": texts, "labels": [texts, 0], "total": [0.5 * texts]}


@pytest.fixture
def served(database: Database) -> Database:
    register_sample_base(database)
    with database.write() as session:
        for task in ("colours", "tones"):
            VersionRepository(session).add(sample_version(task), sample_task(task))
    return database


def add(database: Database, day: int, *texts: int, number: tuple[str, int] = COLOURS) -> None:
    for count in texts:
        with database.write() as session:
            DriftRepository(session).add(day, {number: numbers(count)})


def days(database: Database, number: tuple[str, int] = COLOURS) -> list[tuple[int, int, dict[str, Any]]]:
    with database.read() as session:
        return [(one.day, one.texts, one.sums) for one in DriftRepository(session).days(*number, 0, 10**6)]


def test_weeks_begin_on_monday() -> None:
    assert [date_of(day) for day in (0, 20_785)] == ["1970-01-01", "2026-11-28"]
    assert monday_of(week_of(20_785)) == "2026-11-23"
    assert [week_of(day) for day in days_of(2960)] == [2960] * 7
    assert day_of(86_399.9) == 0


def test_sums_are_added_number_by_number() -> None:
    assert added(numbers(1), numbers(2)) == numbers(3)
    assert together([]) is None
    assert together([numbers(1), numbers(2), numbers(4)]) == numbers(7)
    with pytest.raises(ValueError, match="shorter"):
        added({"labels": [1, 2]}, {"labels": [1]})


def test_who_answers_adds_to_the_day(served: Database) -> None:
    add(served, 20_000, 3, 4)
    add(served, 20_001, 5)
    add(served, 20_000, 1, number=("tones", 1))
    assert days(served) == [(20_000, 7, numbers(7)), (20_001, 5, numbers(5))]
    with served.read() as session:
        assert DriftRepository(session).standing(*COLOURS, week_of(20_000)) == (12, 0, False)
        assert DriftRepository(session).weeks_now(week_of(20_000)) == [
            ("colours", 1, 12, False), ("tones", 1, 1, False),
        ]  # fmt: skip


def test_nothing_is_lost_between_several_that_add_at_once(served: Database) -> None:
    both = {COLOURS: numbers(1), ("tones", 1): numbers(2)}

    def work() -> None:
        for _ in range(15):
            served.write_again(lambda session: DriftRepository(session).add(20_000, both))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert days(served) == [(20_000, 60, numbers(60))]
    assert days(served, ("tones", 1)) == [(20_000, 120, numbers(120))]


def test_texts_of_a_version_that_is_gone_are_forgotten(served: Database) -> None:
    with served.write() as session:
        assert DriftRepository(session).add(20_000, {("colours", 9): numbers(1), COLOURS: numbers(2)}) == [COLOURS]
    assert days(served) == [(20_000, 2, numbers(2))]


def test_numbers_of_another_shape_begin_again(served: Database) -> None:
    add(served, 20_000, 3)
    with served.write() as session:
        DriftRepository(session).add(20_000, {COLOURS: {"answered": 1, "labels": [1, 0, 0], "total": [0.0]}})
    assert days(served) == [(20_000, 4, {"answered": 1, "labels": [1, 0, 0], "total": [0.0]})]


def test_an_alarm_is_kept_with_the_look(served: Database) -> None:
    add(served, 20_000, 3)
    with served.write() as session:
        DriftRepository(session).set_look(COLOURS, 20_000, 62, {"texts": 62})
    with served.write() as session:
        DriftRepository(session).set_look(COLOURS, 20_000, 125, None)
        assert DriftRepository(session).standing(*COLOURS, week_of(20_000)) == (3, 125, True)
        (day,) = DriftRepository(session).days(*COLOURS, 0, 10**6)
    assert day.alarm == {"texts": 62}


def test_a_deleted_task_leaves_no_numbers(served: Database) -> None:
    add(served, 20_000, 3)
    add(served, 20_000, 1, number=("tones", 1))
    with served.write() as session:
        DeletingRepository(session).remove(Root("colours", frozenset({BASE})))
    assert days(served) == []
    assert len(days(served, ("tones", 1))) == 1


def test_retention_deletes_old_days(served: Database) -> None:
    with served.read() as session:
        today = day_of(read_clock(session))
    for day in (today - 100, today - 92, today):
        add(served, day, 1)
    with served.write() as session:
        assert RetentionRepository(session).drift_days(92) == 1
        assert RetentionRepository(session).drift_days(92) == 0
    assert [day for day, *_ in days(served)] == [today - 92, today]
