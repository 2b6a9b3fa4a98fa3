"""The measurement of many jobs an hour: its model of waits, its verdicts, and the job that only sleeps."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select

from bench.fleet import __main__ as fleet
from bench.fleet import pipeline
from bench.fleet.waits import modelled_waits, percentile
from onboard.domain.job import JobState
from onboard.domain.names import LATEST
from onboard.registry.aliases import AliasRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from workers.shell import work

RATE: Mapping[str, Any] = {
    "minutes": 20.0, "jobs": 330, "offered_per_hour": 1000, "lost": 0, "second_attempts": 0, "busy_share": 0.8,
    "overhead_seconds": 0.1, "wait_seconds": {"p50": 0.1, "p99": 11.0},
    "modelled_seconds": {"p50": 0.0, "p99": 10.0}, "owners_mean_wait_seconds": {"least": 0.1, "most": 2.0},
    "submit_ms": {"p50": 20.0, "p99": 40.0}, "database_ms_per_job": 30.0, "commits_per_job": 40.0,
    "postgres_cores": 0.1, "worker_cores": 0.2, "connections": 40, "redis_bytes": 1_000_000,
    "worker_bytes": 200_000_000, "database_bytes_per_job": 20_000,
    "quiet_owner": {"seconds": 28.0, "job_seconds": 28.3},
}  # fmt: skip
DOCUMENT: Mapping[str, Any] = {
    "command": "python -m bench.fleet", "machine": {"cores": 2, "processor": "a processor"}, "owners": 50,
    "sizes": {"workers": 12, "tasks": 2000, "versions": 200_000}, "rates": {"1,000 an hour": RATE},
}  # fmt: skip


@pytest.mark.parametrize(
    ("arrivals", "seconds", "servers", "waits"),
    [
        ([0.0, 1.0, 2.0], [10.0, 10.0, 10.0], 1, [0.0, 9.0, 18.0]),
        ([0.0, 1.0, 2.0], [10.0, 10.0, 10.0], 2, [0.0, 0.0, 8.0]),
        ([0.0, 1.0, 2.0, 3.0], [10.0, 1.0, 3.0, 1.0], 2, [0.0, 0.0, 0.0, 2.0]),
        ([], [], 3, []),
    ],
)
def test_a_job_of_the_model_waits_for_the_first_free_server(
    arrivals: list[float], seconds: list[float], servers: int, waits: list[float]
) -> None:
    assert modelled_waits(arrivals, seconds, servers) == waits


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 3), (0.99, 4)])
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    assert percentile([4, 1, 3, 2], share) == value


@pytest.mark.parametrize(
    ("key", "figure", "missed"),
    [
        ("lost", 1, "no job is lost"),
        ("wait_seconds", {"p50": 0.1, "p99": 12.1}, "99th percentile of waits"),
        ("database_ms_per_job", 30.1, "of the database"),
        ("quiet_owner", {"seconds": 28.4, "job_seconds": 28.3}, "quiet owner"),
    ],
)
def test_each_target_can_be_missed(key: str, figure: object, missed: str) -> None:
    assert all(reached for *_, reached in fleet.verdicts(DOCUMENT))
    document = copy.deepcopy(dict(DOCUMENT))
    document["rates"]["1,000 an hour"][key] = figure
    failed = [target for target, _, reached in fleet.verdicts(document) if not reached]
    assert len(failed) == 1
    assert missed in failed[0]
    assert "**not met**" in fleet.page(document)


def test_the_page_has_a_row_for_every_figure() -> None:
    text = fleet.page(DOCUMENT)
    assert "| workers busy | 80% |" in text
    assert "| wait, 99%, s | 11 |" in text
    assert "| growth of the database, bytes a job | 20,000 |" in text


def test_a_job_sleeps_for_its_stages_and_publishes_a_version(
    tiny_services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(pipeline, "_sleep", lambda seconds, progress: slept.append(seconds))
    installation = fleet.Installation(tiny_services, fleet.Sizes(tasks=2, versions=4), fleet._checked(tmp_path), 1)
    installation.fill()
    job = installation._submit("new", "somebody", {"probe": 2.0, "train": 3.0})
    pipeline.preload(tiny_services)
    done = work(tiny_services, "w", ["default"], pipeline.run)
    assert done is not None
    assert (done.id, done.state) == (job, JobState.SUCCEEDED)
    assert slept == [2.0, 3.0]
    with tiny_services.database.read() as session:
        assert AliasRepository(session).find("new", LATEST) == 1
        assert JobRepository(session).get(job).owner == "somebody"
        first = session.scalars(select(JobRow.state).order_by(JobRow.number)).first()
    assert first == JobState.CANCELLED
