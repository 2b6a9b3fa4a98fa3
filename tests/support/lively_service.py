"""A service with something of everything in it, to be backed up, and empty ones to restore it into."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onboard.bases import Base
from onboard.domain.job import Job, Stage
from onboard.domain.worker import WorkerState
from onboard.operations.access import create_token, offer_code, revoke_token, sign_in
from onboard.operations.backup.restore import NOTHING, RestoreResult, restore
from onboard.operations.gc import collect_garbage
from onboard.registry import dump
from onboard.registry.aliases import AliasRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.load import GoingOn
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services, open_services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.serving import Predictor
from onboard.settings import Settings
from onboard.versions.fetch import fetch
from support.published import add_version, embedding_of
from support.registry_samples import sample_spec

INPUTS = [
    {"task": task, "ref": ref, "text": word}
    for task, refs in {"mood": ("latest", "v1", "good"), "sst2": ("latest",)}.items()
    for ref in refs
    for word in ("good film", "bad plot")
]


def quiet(_message: str) -> None:
    """Nobody listens."""


_CHANGED = ("jobs", "job_events", "tokens", "audit_log", "webhook_events", "webhook_deliveries")


@dataclass
class Empty:
    """A service that nobody has used: where to restore to."""

    settings: Settings

    def opened(self) -> Services:
        return open_services(self.settings)


def server_settings(tmp_path: Path, base: Base, url: str, name: str) -> Settings:
    return Settings(
        home=tmp_path / name,
        base=str(base.folder),
        device="cpu",
        database_url=url,
        broker_url="redis://127.0.0.1:9/0",
        artifact_url=str(tmp_path / name / "artifacts"),
    )


def fill(services: Services, base: Base) -> None:
    for seed in (1, 2, 3):
        add_version(services, base, "mood", (1, 2), ("good", "bad"), z=embedding_of(seed))
    add_version(services, base, "colours", ("red", "blue"), ("red", "blue"), z=embedding_of(9), held_out=(0, 2))
    with services.database.write() as session:
        aliases = AliasRepository(session)
        aliases.move("mood", "good", 2, actor="me", reason="promoted")
        aliases.move("mood", "latest", 1, reason="promoted")
        aliases.rollback("mood", "latest")
        QueueRepository(session).set_paused("gpu", True)
        WorkerRepository(session).enter("w1", WorkerState.RUNNING, queues=["default"], host="there", device="cpu")
        LeaseRepository(session).take("reconciler", "w1", 60)
        JobRepository(session).add(sample_spec("waiting"), queue="gpu", key="once")
        ended, _ = JobRepository(session).add(sample_spec("ended"))
        JobRepository(session).cancel(ended.id)
    _let_people_in(services)
    running = claimed(services, "running")
    output = services.store(b'{"z": [1.0]}', "stage_output")
    with services.database.write() as session:
        StageOutputRepository(session).put("key", running.id, Stage.PROBE, output)
        JobRepository(session).cancel(claimed_in(session, "unwanted").id)
    services.store(b"of nobody", "probe")


def _let_people_in(services: Services) -> None:
    """Tokens that work and that do not, a browser that is signed in, and webhooks in every state."""
    create_token(services.database, "leaver", ["admin"])
    _, secret = create_token(services.database, "reader", ["read"])
    sign_in(services.database, secret)
    offer_code(services.database)
    revoke_token(services.database, "leaver")
    with services.database.write() as session:
        outbox = OutboxRepository(session)
        outbox.address(["a.example.com/1", "b.example.com/2"], 60.0)
        first, second, *_ = outbox.due("a.example.com/1")
        outbox.delivered(first)
        outbox.failed(second, "it answered 410", None)
        outbox.add("alias.moved", {"task": "mood", "alias": "latest"})


def claimed(services: Services, task: str) -> Job:
    with services.database.write() as session:
        return claimed_in(session, task)


def claimed_in(session: Any, task: str) -> Job:
    added, _ = JobRepository(session).add(sample_spec(task, note="ümlaut \u2028 \U0001f600"))
    job = ClaimRepository(session).claim("w1", ["default"], pid=7)
    assert job is not None
    assert job.id == added.id
    return job


def rows_of(services: Services) -> dict[str, list[dict[str, Any]]]:
    """Every row that a backup holds, in an order that does not depend on the database."""
    with services.database.read() as session:
        return {
            table.name: sorted(dump.rows(session, table), key=lambda row: json.dumps(row, sort_keys=True))
            for table in dump.tables()
        }


def that_stay(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of the tables that a restore leaves as they were."""
    return {table: table_rows for table, table_rows in rows.items() if table not in _CHANGED}


def fetched(services: Services, folder: Path) -> dict[str, bytes]:
    return {
        f"{reference}/{path.name}": path.read_bytes()
        for reference in ("mood", "mood@v1", "mood@v2", "mood@good", "colours", "sst2")
        for path in fetch(services, reference, folder / reference).files
    }


def answers(services: Services) -> list[tuple[Any, int, list[float]]]:
    predictions = Predictor(services).predict(INPUTS)
    return [
        (prediction.label, prediction.version, [float(share) for share in prediction.probabilities])
        for prediction in predictions
    ]


def restored_into(empty: Empty, source: str | Path, going_on: GoingOn = NOTHING) -> RestoreResult:
    return restore(empty.settings, str(source), quiet, going_on)


def require_same(before: Services, after: Services, tmp_path: Path) -> None:
    assert that_stay(rows_of(after)) == that_stay(rows_of(before))
    assert fetched(after, tmp_path / "after") == fetched(before, tmp_path / "before")
    assert answers(after) == answers(before)
    assert collect_garbage(after).damaged == []


def rows_of_home(empty: Empty) -> dict[str, list[dict[str, Any]]]:
    services = empty.opened()
    try:
        return rows_of(services)
    finally:
        services.close()
