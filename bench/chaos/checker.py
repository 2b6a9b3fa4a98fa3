"""Reads registry and artifacts when all is quiet, and reports every violation.

It knows which jobs were submitted and nothing else of what happened. Every row is read; every artifact that a row
refers to is read and verified, and every file of the store has to have a row. Unreferenced files with a row, and
what a killed writer left unfinished, gc deletes in time: it is counted, and no violation.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from bench.chaos.poison import is_poison
from onboard.domain.job import TRANSITIONS, JobState
from onboard.domain.methods import WEIGHTS_FORMAT
from onboard.errors import DamagedError, NotFoundError
from onboard.registry.artifacts import REFERENCES
from onboard.registry.clock import database_now
from onboard.registry.services import Services
from onboard.registry.tables import (
    AliasMoveRow,
    AliasRow,
    ArtifactRow,
    EmbeddingVersionRow,
    JobEventRow,
    JobRow,
    LeaseRow,
)
from onboard.registry.workers import WorkerRepository
from onboard.storage.embedding import embedding_digest, read_facts, unpack_embedding
from onboard.storage.weights import unpack_weights, weights_digest

LOST, DOUBLED = "lost", "doubled"


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong.

    Args:
        kind: lost, doubled, ended, order, numbering, alias, artifact, orphan, lease, claimed, (of
            what was restored) backup or (the auditor's) answer.
        what: a sentence, with the job, task or digest that it is about.
    """

    kind: str
    what: str


@dataclass(frozen=True)
class Kept:
    """Everything that the registry knows, read in one transaction."""

    jobs: dict[str, JobRow]
    events: dict[str, list[JobEventRow]]
    versions: list[EmbeddingVersionRow]
    aliases: list[AliasRow]
    moves: list[AliasMoveRow]
    artifacts: dict[str, ArtifactRow]
    referenced: set[str]
    leases: list[str]
    claims: dict[str, str]  # worker → the job that it is said to run


@dataclass
class Verdict:
    """The findings of the checker, and how much it checked."""

    violations: list[Violation] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def count(self, kind: str) -> int:
        """How many violations of this kind there are."""
        return sum(violation.kind == kind for violation in self.violations)


def check(services: Services, submitted: Collection[str], *, finished: bool = True) -> Verdict:
    """Check a deployment at which nothing works any more.

    Args:
        submitted: ids of the jobs that were accepted; others are violations.
        finished: whether all of them must have ended; they need not have in what a backup gives.
    """
    with services.database.read() as session:
        registry = _read(session)
        violations = list(_jobs(registry, submitted, finished))
        for looked_at in (_events, _versions, _aliases, _nobody_works):
            violations += looked_at(registry)
    stored = _stored(services)
    violations += [*_artifacts(registry, services), *_embeddings(registry, services), *_orphans(registry, stored)]
    store = services.artifacts
    facts = {
        "states": dict(Counter(job.state for job in registry.jobs.values()).most_common()),
        "events": sum(map(len, registry.events.values())),
        "versions": sum(version.job is not None for version in registry.versions),
        "artifacts": len(stored),
        "artifacts_left_for_gc": len(stored - registry.referenced),
        "unfinished_files_left_for_gc": sum(len(store.unfinished(shard)) for shard in store.shards()),
    }
    return Verdict(violations, facts)


def _read(session: Session) -> Kept:
    events: dict[str, list[JobEventRow]] = defaultdict(list)
    for event in session.scalars(select(JobEventRow).order_by(JobEventRow.id)):
        events[event.job].append(event)
    return Kept(
        jobs={job.id: job for job in session.scalars(select(JobRow))},
        events=events,
        versions=list(
            session.scalars(select(EmbeddingVersionRow).order_by(EmbeddingVersionRow.task, EmbeddingVersionRow.version))
        ),
        aliases=list(session.scalars(select(AliasRow))),
        moves=list(session.scalars(select(AliasMoveRow).order_by(AliasMoveRow.id))),
        artifacts={artifact.digest: artifact for artifact in session.scalars(select(ArtifactRow))},
        referenced={digest for column in REFERENCES for digest in session.scalars(select(column)) if digest},
        leases=list(session.scalars(select(LeaseRow.name).where(LeaseRow.expires_at > database_now()))),
        claims={row.name: row.job for row in WorkerRepository(session).list(include_stopped=True) if row.job},
    )


def _jobs(registry: Kept, submitted: Collection[str], finished: bool) -> Iterator[Violation]:
    """Every job that was accepted is there and has ended, and no other; poison has not succeeded."""
    for job_id in submitted:
        if job_id not in registry.jobs:
            yield Violation(LOST, f"job {job_id} was accepted and is not there")
    for job in registry.jobs.values():
        if job.id not in submitted:
            yield Violation(DOUBLED, f"job {job.id} was submitted by nobody")
        if finished and not JobState(job.state).finished:
            yield Violation(LOST, f"job {job.id} has not ended: {job.state}, attempt {job.attempt}/{job.max_attempts}")
        if is_poison(job.task) and job.state == JobState.SUCCEEDED:
            yield Violation("ended", f"job {job.id} is poison and succeeded")
        if job.attempt > job.max_attempts:
            yield Violation("ended", f"job {job.id} had {job.attempt} attempts of {job.max_attempts}")
        if job.state == JobState.FAILED and not is_poison(job.task):
            yield Violation("ended", f"job {job.id} failed: {(job.error or {}).get('message')}")
        if job.lease_expires_at is not None:
            yield Violation("lease", f"job {job.id} is {job.state} and holds a lease")
        yield from _versions_of(job, [version for version in registry.versions if version.job == job.id])


def _versions_of(job: JobRow, published: Sequence[EmbeddingVersionRow]) -> Iterator[Violation]:
    """A job that succeeded has published one final version, others have none; before it may be a provisional one."""
    succeeded = job.state == JobState.SUCCEEDED
    final = [version for version in published if not version.provisional]
    provisional = [version for version in published if version.provisional]
    if len(final) > 1 or (final and not succeeded) or len(provisional) > 1:
        counts = f"{len(final)} versions and {len(provisional)} provisional ones"
        yield Violation(DOUBLED, f"job {job.id} is {job.state} and published {counts}")
    if succeeded and not final:
        yield Violation(LOST, f"job {job.id} succeeded without a version")
    if succeeded and len(final) == 1:
        (version,) = final
        if any(first.version >= version.version for first in provisional):
            yield Violation("numbering", f"job {job.id} published its provisional version after its final one")
        if (version.task, version.version) != (job.task, (job.result or {}).get("version")):
            yield Violation("numbering", f"job {job.id} tells another version than {version.task}@v{version.version}")


def _events(registry: Kept) -> Iterator[Violation]:
    for job in registry.jobs.values():
        events = registry.events.get(job.id, [])
        yield from _in_order(job, events)
        yield from _path(job, [event for event in events if event.kind == "state"])


def _in_order(job: JobRow, events: Sequence[JobEventRow]) -> Iterator[Violation]:
    """Times and attempts never go back: nothing was written by an attempt that had lost the job."""
    for before, after in pairwise(events):
        if after.at < before.at:
            yield Violation("order", f"job {job.id}: event {after.id} is older than event {before.id}")
        if after.attempt < before.attempt:
            yield Violation("order", f"job {job.id}: attempt {after.attempt} wrote after attempt {before.attempt}")


def _path(job: JobRow, changes: Sequence[JobEventRow]) -> Iterator[Violation]:
    """The states follow each other as they may, each attempt began once, and the job ended once after each retry."""
    states = [JobState(event.message) for event in changes]
    if states[:1] != [JobState.QUEUED]:
        yield Violation("order", f"job {job.id} does not begin as queued")
    for before, after in pairwise(states):
        if after not in TRANSITIONS[before]:
            kind = DOUBLED if before.finished and after.finished else "order"
            yield Violation(kind, f"job {job.id} went from {before} to {after}")
    if states and states[-1] != job.state:
        yield Violation("order", f"job {job.id} is {job.state}, its last event says {states[-1]}")
    attempts = [event.attempt for event in changes if event.message == JobState.RUNNING]
    if attempts != list(range(1, job.attempt + 1)):
        yield Violation(DOUBLED, f"job {job.id} has attempt {job.attempt}, its claims were {attempts}")


def _versions(registry: Kept) -> Iterator[Violation]:
    """The versions of a task are 1..n, in the order in which they were published."""
    by_task: dict[str, list[EmbeddingVersionRow]] = defaultdict(list)
    for version in registry.versions:
        by_task[version.task].append(version)
    for task, versions in by_task.items():
        numbers = [version.version for version in versions]
        if numbers != list(range(1, len(numbers) + 1)):
            yield Violation("numbering", f"task {task} has the versions {numbers}")
        times = [version.created_at for version in versions]
        if times != sorted(times):
            yield Violation("order", f"the versions of task {task} are not in the order of their times")


def _aliases(registry: Kept) -> Iterator[Violation]:
    """Every alias names what its last move says, each move starts where the one before ended."""
    last: dict[tuple[str, str], int | None] = {}
    for move in registry.moves:
        if move.previous != last.get((move.task, move.alias)):
            yield Violation("alias", f"a move of {move.task}@{move.alias} does not start where the last one ended")
        last[move.task, move.alias] = move.version
    present = {(alias.task, alias.alias): alias.version for alias in registry.aliases}
    if present != last:
        yield Violation("alias", f"aliases and their history differ: {dict(present.items() ^ last.items())}")
    for task in {version.task for version in registry.versions}:
        if (task, "latest") not in present:
            yield Violation("alias", f"task {task} has no latest")


def _nobody_works(registry: Kept) -> Iterator[Violation]:
    for name in registry.leases:
        yield Violation("lease", f"the lease {name!r} is held")
    for worker, job in registry.claims.items():
        yield Violation("claimed", f"worker {worker} is said to run job {job}")


def _artifacts(registry: Kept, services: Services) -> Iterator[Violation]:
    """Everything that a row refers to has its own row, of the right size, and bytes that match the digest."""
    for digest in sorted(registry.referenced):
        row = registry.artifacts.get(digest)
        if row is None:
            yield Violation("artifact", f"{digest} is referred to and has no row")
            continue
        try:
            data = services.artifacts.get(digest)
        except (NotFoundError, DamagedError) as error:
            yield Violation("artifact", error.message)
            continue
        if row.size_bytes != len(data):
            yield Violation("artifact", f"{digest} has {len(data)} bytes, its row says {row.size_bytes}")


def _embeddings(registry: Kept, services: Services) -> Iterator[Violation]:
    """The tensors that a job published are those of its row: task, number, digest of z."""
    for version in registry.versions:
        if version.job is None:
            continue
        try:
            content = services.artifacts.get(version.artifact)
        except (NotFoundError, DamagedError):
            continue  # `_artifacts` tells of it
        facts = read_facts(content)
        same = (facts["task"], facts["version"]) == (version.task, version.version)
        if not same or digest_of(content) != version.embedding_digest:
            yield Violation("artifact", f"{version.artifact} is not {version.task}@v{version.version}")


def digest_of(content: bytes) -> str:
    """Of the numbers in a version's file, be they an embedding or a readout alone. Raises DamagedError."""
    if read_facts(content).get("format") == WEIGHTS_FORMAT:
        return weights_digest(unpack_weights(content))
    return embedding_digest(unpack_embedding(content))


def _stored(services: Services) -> set[str]:
    return {digest for shard in services.artifacts.shards() for digest in services.artifacts.in_shard(shard)}


def _orphans(registry: Kept, stored: set[str]) -> Iterator[Violation]:
    for digest in sorted(stored - set(registry.artifacts)):
        yield Violation("orphan", f"{digest} is stored and has no row")
