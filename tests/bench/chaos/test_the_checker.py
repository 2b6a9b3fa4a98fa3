"""The checker of bench/chaos sees whatever is wrong: a quiet registry is broken in one way at a time."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support.registry_samples import add_job, claim_job, register_sample_base, sample_task, sample_version

from bench.chaos.checker import Verdict, check
from onboard.domain.job import JobState
from onboard.domain.methods import WEIGHTS_FORMAT
from onboard.domain.task import EmbeddingVersion
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.storage.weights import pack_weights, weights_digest

TABLES = ("jobs", "job_events", "embedding_versions", "artifacts", "aliases", "alias_history", "leases", "workers")


@dataclass
class Quiet:
    """Three jobs that published red@v1, red@v2 and blue@v1, one that was cancelled, one that was lost and retried."""

    services: Services
    jobs: list[str]

    def sql(self, *statements: str) -> None:
        """Change rows behind everybody's back; tables lose the constraints that would forbid it."""
        path = self.services.settings.resolved_home / "onboard.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for table in TABLES:
                connection.execute("PRAGMA legacy_alter_table = ON")
                connection.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_before")
            for statement in statements:
                assert connection.execute(statement).rowcount, f"{statement} changed nothing"

    def verdict(self) -> Verdict:
        return check(self.services, self.jobs)

    def path(self, job: int) -> Path:
        """The file of the embedding that a job published."""
        with self.services.database.read() as session:
            version = VersionRepository(session).of_job(self.jobs[job])
        assert version is not None
        name = version.artifact.removeprefix("sha256:")
        return self.services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name


@pytest.fixture(scope="module")
def _quiet_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A home with these jobs, and their ids; each test breaks a copy."""
    home = tmp_path_factory.mktemp("quiet") / "home"
    embedded = Settings(home=home, database_url="", broker_url="", artifact_url="")
    with closing(open_services(embedded)) as services:
        return home, quiet_jobs(services)


@pytest.fixture
def quiet(_quiet_home: tuple[Path, list[str]], tmp_path: Path) -> Iterator[Quiet]:
    home, jobs = _quiet_home
    copied = shutil.copytree(home, tmp_path / "home")
    with closing(open_services(Settings(home=copied))) as services:
        yield Quiet(services, list(jobs))


def quiet_jobs(services: Services) -> list[str]:
    register_sample_base(services.database)
    services.store(b"tensors", "hypernetwork")
    jobs: list[str] = []
    for task in ("red", "red", "blue"):
        jobs.append(submit(services, task))
        publish(services, claim(services), task)
    cancelled, retried = submit(services, "red"), submit(services, "blue")
    jobs += [cancelled, retried]
    with services.database.write() as session:
        JobRepository(session).cancel(cancelled)
    claim(services, lease_seconds=-1)
    attempt = claim(services)
    with services.database.write() as session:
        ClaimRepository(session).finish(*attempt, JobState.DEAD)
        JobRepository(session).retry(retried)
    publish(services, claim(services), "blue")
    return jobs


def submit(services: Services, task: str) -> str:
    return add_job(services.database, task).id


def claim(services: Services, lease_seconds: float = 60) -> tuple[str, int]:
    job = claim_job(services.database, "w", lease_seconds=lease_seconds)
    return job.id, job.attempt


def publish(services: Services, attempt: tuple[str, int], task: str) -> None:
    job, number = attempt
    z = np.full(4, sum(map(ord, job)), dtype=np.float32)
    draft = numbered(services, replace(sample_version(task, job=job), embedding_digest=embedding_digest(z)))
    artifact = services.store(pack_embedding(z, embedding_facts(draft, "sha256:0")), "embedding")
    with services.database.write() as session:
        VersionRepository(session).publish(
            replace(draft, artifact=artifact), sample_task(task), attempt=number, result={"state": "succeeded"}
        )


def publish_first(services: Services, attempt: tuple[str, int], task: str) -> None:
    """A readout alone, as provisional."""
    job, number = attempt
    tensors = {"bias": np.full(2, sum(map(ord, job)), dtype=np.float32)}
    draft = replace(sample_version(task, job=job), embedding_digest=weights_digest(tensors), method="linear")
    draft = numbered(services, replace(draft, provisional=True))
    facts = {**embedding_facts(draft, "sha256:0"), "format": WEIGHTS_FORMAT}
    artifact = services.store(pack_weights(tensors, facts), "weights")
    with services.database.write() as session:
        VersionRepository(session).publish_provisional(
            replace(draft, artifact=artifact), sample_task(task), attempt=number, move_latest=True, present=None,
            new_labels=False,
        )  # fmt: skip


def numbered(services: Services, draft: EmbeddingVersion) -> EmbeddingVersion:
    with services.database.read() as session:
        return replace(draft, version=VersionRepository(session).next_number(draft.task))


def test_a_job_may_publish_a_provisional_version_before_its_final_one(quiet: Quiet) -> None:
    quiet.jobs.append(submit(quiet.services, "green"))
    attempt = claim(quiet.services)
    publish_first(quiet.services, attempt, "green")
    publish(quiet.services, attempt, "green")
    quiet.jobs.append(submit(quiet.services, "green"))
    lost = claim(quiet.services)
    publish_first(quiet.services, lost, "green")
    with quiet.services.database.write() as session:
        ClaimRepository(session).finish(*lost, JobState.CANCELLED)
    assert quiet.verdict().violations == []
    quiet.sql("UPDATE embedding_versions SET provisional = 1 WHERE task = 'green' AND version = 2")
    kinds = sorted(violation.kind for violation in quiet.verdict().violations)
    assert kinds == ["doubled", "lost"]


def test_a_readout_whose_numbers_are_others_is_seen(quiet: Quiet) -> None:
    quiet.jobs.append(submit(quiet.services, "green"))
    attempt = claim(quiet.services)
    publish_first(quiet.services, attempt, "green")
    publish(quiet.services, attempt, "green")
    quiet.sql("UPDATE embedding_versions SET embedding_digest = 'sha256:other' WHERE task = 'green' AND version = 1")
    assert [violation.kind for violation in quiet.verdict().violations] == ["artifact"]


def test_nothing_is_wrong_where_all_is_quiet(quiet: Quiet) -> None:
    quiet.services.store(b"nobody needs this", "embedding")
    verdict = quiet.verdict()
    assert verdict.violations == []
    assert verdict.facts["states"] == {"succeeded": 4, "cancelled": 1}
    assert (verdict.facts["versions"], verdict.facts["artifacts_left_for_gc"]) == (4, 1)


def test_a_job_that_is_gone_or_that_nobody_submitted_is_seen(quiet: Quiet) -> None:
    assert [violation.kind for violation in check(quiet.services, [*quiet.jobs, "0123"]).violations] == ["lost"]
    assert [violation.kind for violation in check(quiet.services, quiet.jobs[1:]).violations] == ["doubled"]


FIRST = "(SELECT id FROM jobs WHERE number = 1)"
LAST_EVENT = f"(SELECT max(id) FROM job_events WHERE job = {FIRST})"
BREAKAGES: dict[str, tuple[str, list[str]]] = {
    "a job still waits": ("lost", ["UPDATE jobs SET state = 'queued' WHERE number = 1"]),
    "a job still runs": ("lost", ["UPDATE jobs SET state = 'running' WHERE number = 1"]),
    "a job failed": ("ended", ["UPDATE jobs SET state = 'failed' WHERE number = 4"]),
    "a job succeeded without a version": ("lost", ["UPDATE jobs SET state = 'succeeded' WHERE number = 4"]),
    "a cancelled job published": ("doubled", ["UPDATE jobs SET state = 'cancelled' WHERE number = 1"]),
    "a job published twice": (
        "doubled", [f"UPDATE embedding_versions SET job = {FIRST} WHERE task = 'red' AND version = 2"]
    ),
    "a job ended twice": (
        "doubled",
        [
            "INSERT INTO job_events (id, job, attempt, at, kind, message, numbers) SELECT 999, job, attempt, at, kind,"
            f" message, numbers FROM job_events WHERE id = {LAST_EVENT}"
        ],
    ),
    "an attempt was given out twice": (
        "doubled", ["UPDATE job_events SET message = 'running' WHERE id = 1 + (SELECT min(id) FROM job_events)",
                    "UPDATE jobs SET attempt = 2 WHERE number = 1"]
    ),
    "a version tells another job's number": (
        "numbering", ["UPDATE jobs SET result = '{\"version\": 7}' WHERE number = 1"]
    ),
    "a number is missing": ("numbering", ["UPDATE embedding_versions SET version = 3 WHERE task='red' AND version=2"]),
    "a number is there twice": (
        "numbering", ["UPDATE embedding_versions SET version = 1 WHERE task = 'red' AND version = 2"]
    ),
    "later versions are older": (
        "order", ["UPDATE embedding_versions SET created_at = 1 WHERE task = 'red' AND version = 2"]
    ),
    "an event is older than the one before": ("order", [f"UPDATE job_events SET at = 1 WHERE id = {LAST_EVENT}"]),
    "a late attempt wrote": ("order", [f"UPDATE job_events SET attempt = 0 WHERE id = {LAST_EVENT}"]),
    "a job has no first event": (
        "order", ["DELETE FROM job_events WHERE id = (SELECT min(id) FROM job_events)"]
    ),
    "the end of a job was not told": ("order", [f"DELETE FROM job_events WHERE id = {LAST_EVENT}"]),
    "an alias moved without a trace": ("alias", ["UPDATE aliases SET version = 1 WHERE task = 'red'"]),
    "a move was lost": ("alias", ["DELETE FROM alias_history WHERE version = 2 AND task = 'red'"]),
    "a task has no latest": ("alias", ["DELETE FROM aliases WHERE task = 'red'"]),
    "a finished job holds a lease": ("lease", ["UPDATE jobs SET lease_expires_at = 1 WHERE number = 1"]),
    "the reconciler's lease is held": ("lease", ["INSERT INTO leases VALUES ('reconciler', 'w', 9e9)"]),
    "an artifact has no row": ("artifact", ["DELETE FROM artifacts WHERE kind = 'embedding'"]),
    "an artifact's row is wrong": ("artifact", ["UPDATE artifacts SET size_bytes = 1 WHERE kind = 'embedding'"]),
    "a version has another one's tensors": (
        "artifact",
        ["UPDATE embedding_versions SET artifact ="
         " (SELECT artifact FROM embedding_versions WHERE task = 'blue' LIMIT 1) WHERE task = 'red' AND version = 1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_whatever_is_wrong_in_the_registry_is_seen(quiet: Quiet, breakage: str) -> None:
    kind, statements = BREAKAGES[breakage]
    quiet.sql(*statements)
    verdict = quiet.verdict()
    assert verdict.count(kind) > 0, verdict.violations


def test_a_worker_that_is_said_to_work_is_seen(quiet: Quiet) -> None:
    quiet.sql(
        "INSERT INTO workers (name, state, queues, host, device, facts, started_at, heartbeat_at)"
        " VALUES ('w', 'running', '[]', 'here', 'cpu', '{}', 1, 1)",
        "UPDATE jobs SET state = 'running', worker = 'w', lease_expires_at = 9e12 WHERE number = 1",
    )
    assert quiet.verdict().count("claimed") == 1


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"!")


@pytest.mark.parametrize("harm", [damage, Path.unlink])
def test_bytes_that_are_damaged_or_gone_are_seen(quiet: Quiet, harm: Callable[[Path], None]) -> None:
    harm(quiet.path(0))
    assert [violation.kind for violation in quiet.verdict().violations] == ["artifact"]


def test_bytes_without_a_row_are_seen_and_what_a_killed_writer_left_is_counted(quiet: Quiet) -> None:
    stored = quiet.path(0)
    (stored.parent / f"{stored.name[:2]}{'0' * 62}").write_bytes(b"whose?")
    (stored.parent / f".{stored.name}.{'0' * 32}").write_bytes(b"hal")
    verdict = quiet.verdict()
    assert [violation.kind for violation in verdict.violations] == ["orphan"]
    assert verdict.facts["unfinished_files_left_for_gc"] == 1
