"""A registry that has been used for years: jobs that ended, tasks, and versions of them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Final

from sqlalchemy import insert
from sqlalchemy.orm import Session

from bench.harness.deployed import MANY
from onboard.domain.job import JobSpec, JobState, new_job_id
from onboard.registry.clock import read_clock
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, JobRow, TaskRow
from onboard.registry.versions import VersionRepository

_STEPS: Final = 400  # of training, whose losses a result holds
_FAILED: Final = 100  # one job of so many
_AT_ONCE: Final = 5_000  # rows of one statement


def add_jobs(session: Session, count: int, *, queued: bool = False) -> str:
    """So many jobs that ended lately, or that wait; returns the id of the last one."""
    now = read_clock(session)
    rows = [_job(now, number, queued) for number in range(count)]
    for start in range(0, count, _AT_ONCE):
        session.execute(insert(JobRow), rows[start : start + _AT_ONCE])
    return str(rows[-1]["id"])


def add_tasks(session: Session, tasks: int, versions: int) -> None:
    """So many tasks with versions like the first one of MANY, in equal shares, and `latest` on the last of each."""
    first = VersionRepository(session).resolve(f"{MANY}@v1")
    share = max(versions // tasks, 1)
    names = [f"task-{number:05d}" for number in range(tasks)]
    made: list[dict[str, Any]] = [
        {**asdict(replace(first, task=name, version=number)), "created_at": float(number)}
        for name in names
        for number in range(1, share + 1)
    ]
    shape = {
        "kind": first.task_kind,
        "labels": list(first.labels),
        "words": list(first.words),
        "low": None,
        "high": None,
    }
    session.execute(
        insert(TaskRow),
        [{"name": name, **shape, "source": False, "last_version": share, "created_at": 0.0} for name in names],
    )
    for start in range(0, len(made), _AT_ONCE):
        session.execute(insert(EmbeddingVersionRow), made[start : start + _AT_ONCE])
    latest = [{"task": name, "alias": "latest", "version": share, "updated_at": 0.0} for name in names]
    session.execute(insert(AliasRow), latest)


def _job(now: float, number: int, queued: bool) -> dict[str, Any]:
    spec = JobSpec(task=f"task-{number % 1000:05d}", dataset="sha256:0", options={"dataset_report": {"warnings": []}})
    failed = number % _FAILED == 0
    row = {
        "id": new_job_id(), "spec": spec.to_json(), "task": spec.task, "queue": "default", "priority": 0,
        "attempt": 0 if queued else 1, "max_attempts": 3, "cancel_requested": False, "created_at": now - 600,
        "not_before_at": now - 600, "state": JobState.QUEUED, "started_at": None, "finished_at": None, "result": None,
        "error": None,
    }  # fmt: skip
    if queued:
        return row
    ended = {
        "state": JobState.FAILED if failed else JobState.SUCCEEDED,
        "started_at": now - 300,
        "finished_at": now - 1,
    }
    if failed:
        return {**row, **ended, "error": {"code": "dataset", "message": f"Row {number} has no label.", "remedy": ""}}
    losses = [1.0 / (step + 1) for step in range(_STEPS)]
    result = {"version": 1, "seconds": {"train": 20.0}, "training": {"loss": losses, "z_norm": losses}}
    return {**row, **ended, "result": result}
