"""What a worker's child does when it hears a bell and cannot work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onboard.errors import UnavailableError
from onboard.registry.services import Services
from onboard.settings import Settings
from workers import tasks
from workers.plan import WorkerPlan


class Away:
    """Stands for what is away for the first `times` calls, and answers `after` then."""

    def __init__(self, times: int, after: Any = None) -> None:
        self.calls, self._times, self._after = 0, times, after

    def __call__(self, *_given: Any, **_named: Any) -> Any:
        self.calls += 1
        if self.calls <= self._times:
            raise UnavailableError("The database cannot be reached.")
        return self._after


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A child of a worker with a pipeline of the tests that has not begun yet; the pauses that it makes."""
    made: list[float] = []
    plan = WorkerPlan(Settings(), "w1", pipeline="support.fake_pipelines")
    monkeypatch.setattr(tasks, "current_app", SimpleNamespace(conf=SimpleNamespace(onboard_plan=plan)))
    monkeypatch.setattr(tasks, "_children", [])
    monkeypatch.setattr(tasks, "device_in_use", lambda device: None)
    monkeypatch.setattr(tasks, "sleep", made.append)
    return made


def test_while_the_database_is_away_waiting_bells_are_answered_one_by_one_and_not_all_at_once(
    pauses: list[float], services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "open_services", lambda *_given: services)
    monkeypatch.setattr(tasks, "work", Away(times=1))
    tasks.answer()
    assert pauses == [1.0]
    tasks.answer()
    assert pauses == [1.0]


def test_a_process_that_began_while_the_database_was_away_works_when_it_is_back(
    pauses: list[float], services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked = Away(times=0)
    monkeypatch.setattr(tasks, "set_up_logging", lambda *_given: None)
    monkeypatch.setattr(tasks, "take_over_loggers", lambda: None)
    monkeypatch.setattr(tasks, "open_services", Away(times=2, after=services))
    monkeypatch.setattr(tasks, "work", worked)
    tasks._start_child()
    tasks.answer()
    assert worked.calls == 0
    tasks.answer()
    assert worked.calls == 1
    assert len(pauses) == 1
