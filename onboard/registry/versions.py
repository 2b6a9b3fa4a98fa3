"""Embedding versions: immutable once published, in one transaction that also ends the job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Row, Select, and_, exists, func, insert, select, tuple_, update
from sqlalchemy.orm import Session

from onboard.domain.job import JobState, Stage
from onboard.domain.methods import WITH_EMBEDDING
from onboard.domain.names import LATEST, Reference
from onboard.domain.task import EmbeddingVersion, Task
from onboard.domain.webhook import CONFIRMED, PUBLISHED
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository, names_version, serves_version
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.hypernetworks import hold_hypernetwork
from onboard.registry.outbox import OutboxRepository
from onboard.registry.quotas import QuotaRepository
from onboard.registry.repository import Repository, record_of
from onboard.registry.states import IS_OPEN
from onboard.registry.tables import AliasRow, ArtifactRow, EmbeddingVersionRow, JobRow, TaskRow
from onboard.registry.tasks import TaskRepository
from onboard.registry.unlearning import REBUILT, UnlearningRepository, require_not_unlearning

# Condition: of a method with an embedding, among those that this release supports.
HAS_EMBEDDING: Final = EmbeddingVersionRow.method.in_(WITH_EMBEDDING)
_NOT_LATEST: Final = "It replaces versions that `latest` did not point to."
PAIRS_AT_ONCE: Final = 5_000  # two parameters each; a statement takes 32,766 in SQLite, 65,535 in PostgreSQL


@dataclass(frozen=True, slots=True)
class Startable:
    """A version that a new task can start from, and the packed fingerprint of its dataset, if any."""

    task: str
    version: int
    fingerprint: str | None


class VersionRepository(Repository):
    """The published versions of every task."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._aliases = AliasRepository(session)
        self._tasks = TaskRepository(session)

    def publish(
        self,
        draft: EmbeddingVersion,
        task: Task,
        *,
        attempt: int,
        result: dict[str, Any],
        move_latest: bool = True,
        present: int | None = None,
        new_labels: bool = False,
    ) -> EmbeddingVersion:
        """Publish the next version of the task and end its job as succeeded, in one transaction.

        A job that rebuilds versions without a deleted task replaces them: their aliases move to the new version.

        Args:
            draft: the version with `job` set; number and time are set here.
            task: the new state of the task, which is created if it does not exist.
            attempt: the fencing token of the job.
            result: the job's result document; its "version" is set here.
            move_latest: whether to move `latest` to it. `latest` always points to the first version.
            present: the version that `latest` must currently point to (compare and swap); 0 means none.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
            PreconditionFailedError: `latest` does not point to `present`.
            ConflictError: the task has another label set, and `new_labels` is false.
        """
        assert draft.job is not None
        claims = ClaimRepository(self._session)
        # first, so that a late attempt gets a FencedError rather than another error
        replaced = claims.hold(draft.job, attempt).spec.replaces
        moves = move_latest and not replaced
        version = self.add(draft, task, move_latest=moves, present=present, new_labels=new_labels)
        OutboxRepository(self._session).add(PUBLISHED, published_facts(version))
        if replaced:
            UnlearningRepository(self._session).replace(task.name, replaced, version.version)
            moved = self._aliases.find(task.name, LATEST) == version.version
            reason = REBUILT if moved else _NOT_LATEST
            result = {**result, "latest": {"alias": LATEST, "moved": moved, "reason": reason}}
        claims.finish(draft.job, attempt, JobState.SUCCEEDED, result={**result, "version": version.version})
        return version

    def publish_provisional(
        self,
        draft: EmbeddingVersion,
        task: Task,
        *,
        attempt: int,
        move_latest: bool,
        present: int | None,
        new_labels: bool,
    ) -> EmbeddingVersion:
        """Publish the next version while its job continues. Arguments and errors as in `publish`."""
        assert draft.job is not None
        assert draft.provisional
        claims = ClaimRepository(self._session)
        claims.hold(draft.job, attempt)  # first, as in `publish`
        version = self.add(draft, task, move_latest=move_latest, present=present, new_labels=new_labels)
        OutboxRepository(self._session).add(PUBLISHED, published_facts(version))
        moved = self._aliases.find(task.name, LATEST) == version.version
        message = f"{version.reference} is published as provisional: its readout already answers, and the job continues"
        facts = {"provisional": True, "version": version.version, "latest": moved}
        claims.append(draft.job, attempt, "note", message, stage=Stage.READOUT, numbers=facts)
        return version

    def confirm(self, job: str, attempt: int, result: dict[str, Any]) -> EmbeddingVersion | None:
        """Make the job's provisional version final and end the job as succeeded, in one transaction.

        Returns:
            The final version; None if the job has no provisional version, and then nothing changed.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
        """
        claims = ClaimRepository(self._session)
        claims.hold(job, attempt)
        row = EmbeddingVersionRow
        statement = update(row).where(row.job == job, row.provisional).values(provisional=False).returning(row)
        confirmed = self._session.scalars(statement).one_or_none()
        if confirmed is None:
            return None
        version = version_of(confirmed)
        OutboxRepository(self._session).add(CONFIRMED, published_facts(version))
        claims.finish(job, attempt, JobState.SUCCEEDED, result={**result, "version": version.version})
        return version

    def add(
        self,
        draft: EmbeddingVersion,
        task: Task,
        *,
        move_latest: bool = True,
        present: int | None = None,
        new_labels: bool = False,
    ) -> EmbeddingVersion:
        """Insert the next version of the task without ending a job (shipped sources, imports).

        Raises:
            PreconditionFailedError: `latest` does not point to `present`.
            ConflictError: the task has another label set and `new_labels` is false, the hypernetwork that it is pinned
                to or was learned under was collected, or a version that it started from is being unlearned.
        """
        assert draft.task == task.name
        for needed in sorted({draft.hypernetwork_version, draft.origin}):
            hold_hypernetwork(self._session, draft.base_digest, needed)
        require_not_unlearning(self._session, draft.parents)
        self._tasks.put(task, new_labels=new_labels)  # locks the task, so that numbers are assigned one by one
        number = self.next_number(task.name)
        size = self._size_of(draft)
        values = {**asdict(draft), "version": number, "created_at": database_now(), "stored_bytes": size}
        row = self._session.scalars(insert(EmbeddingVersionRow).values(values).returning(EmbeddingVersionRow)).one()
        self._session.execute(update(TaskRow).where(TaskRow.name == task.name).values(last_version=number))
        if draft.job is not None:
            QuotaRepository(self._session).charge_job(draft.job, files_of(draft))
        if move_latest or self._aliases.find(task.name, LATEST) is None:
            announce = draft.kind != "source"  # no webhooks for versions that a base ships with
            self._aliases.move(task.name, LATEST, number, expected=present, reason="published", announce=announce)
        return replace(draft, version=number, created_at=row.created_at, stored_bytes=size)

    def _size_of(self, draft: EmbeddingVersion) -> int | None:
        """Return the total size of its files."""
        files = ArtifactRow.digest.in_([digest for digest in (draft.artifact, draft.readout) if digest is not None])
        size = self._session.scalar(select(func.sum(ArtifactRow.size_bytes)).where(files))
        return None if size is None else int(size)

    def next_number(self, task: str) -> int:
        """Return the number of the task's next version. Only reliable while the task is locked."""
        last = self._session.scalars(select(TaskRow.last_version).where(TaskRow.name == task)).one_or_none()
        return (last or 0) + 1

    def resolve(self, reference: str | Reference) -> EmbeddingVersion:
        """Resolve `task`, `task@latest`, `task@v3` or `task@alias`. Raises InputError, NotFoundError."""
        named = Reference.parse(reference) if isinstance(reference, str) else reference
        if self._tasks.find(named.task) is None:
            self._require_not_in_the_making(named)
            self._tasks.get(named.task)
        number = named.version
        if number is None and named.alias is not None:
            number = self._aliases.find(named.task, named.alias)
        statement = select(EmbeddingVersionRow).where(
            EmbeddingVersionRow.task == named.task, EmbeddingVersionRow.version == number
        )
        row = self._session.scalars(statement).one_or_none()
        if row is None:
            self._require_not_in_the_making(named)
            raise NotFoundError("unknown-version-reference", task=named.task, named=named)
        return version_of(row)

    def _require_not_in_the_making(self, named: Reference) -> None:
        """Raise NotFoundError with the job, if an open job will publish the task."""
        job = self._session.execute(
            select(JobRow.id, JobRow.state).where(JobRow.task == named.task, IS_OPEN).order_by(JobRow.number).limit(1)
        ).one_or_none()
        if job is not None:
            where = "its job is queued" if job.state == JobState.QUEUED else "its job runs"
            raise NotFoundError("version-not-yet-learned", task=named.task, job=job.id, named=named, where=where)

    def list(
        self, *, task: str | None = None, base_digest: str | None = None, latest_only: bool = False
    ) -> Sequence[EmbeddingVersion]:
        """Return versions by task and number, without those of deleted tasks.

        Args:
            latest_only: only targets of `latest`, one per task.
        """
        statement = _of_living_tasks().order_by(EmbeddingVersionRow.task, EmbeddingVersionRow.version)
        if task is not None:
            statement = statement.where(EmbeddingVersionRow.task == task)
        if base_digest is not None:
            statement = statement.where(EmbeddingVersionRow.base_digest == base_digest)
        if latest_only:
            statement = statement.join(AliasRow, and_(names_version(), AliasRow.alias == LATEST))
        return [version_of(row) for row in self._session.scalars(statement)]

    def startable(self, base_digest: str) -> Sequence[Startable]:
        """Return the versions that a new task can start from: per task its aliased versions on the base, or else the
        newest.

        A carried version replaces the versions that it was carried from, because its numbers are the same. Versions of
        methods without an embedding are left out.
        """
        statement = (
            select(
                EmbeddingVersionRow.task,
                EmbeddingVersionRow.version,
                EmbeddingVersionRow.fingerprint,
                EmbeddingVersionRow.embedding_digest,
                EmbeddingVersionRow.learned_under,
                exists().where(serves_version()).label("aliased"),
            )
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                TaskRow.deleted_at.is_(None),
                EmbeddingVersionRow.unlearning.is_(None),
                EmbeddingVersionRow.base_digest == base_digest,
                HAS_EMBEDDING,
            )
            .order_by(EmbeddingVersionRow.task, EmbeddingVersionRow.version)
        )
        startable: list[Startable] = []
        for _, rows in groupby(self._session.execute(statement), key=lambda row: row.task):
            of_task = list(rows)
            candidates = [row for row in of_task if row.aliased] or of_task[-1:]
            carried = {row.embedding_digest: row.version for row in candidates if row.learned_under is not None}
            startable += [
                Startable(row.task, row.version, row.fingerprint)
                for row in candidates
                if row.version >= carried.get(row.embedding_digest, 0)
            ]
        return startable

    def require_startable(self, reference: str) -> None:
        """Raise ConflictError if a version is being rebuilt without a deleted task."""
        require_not_unlearning(self._session, [reference])

    def newest(self, task: str, limit: int, before: int | None = None) -> Sequence[EmbeddingVersion]:
        """Return the last `limit` versions of a task, or those before version `before`, by number."""
        statement = _of_living_tasks().where(EmbeddingVersionRow.task == task)
        if before is not None:
            statement = statement.where(EmbeddingVersionRow.version < before)
        rows = self._session.scalars(statement.order_by(EmbeddingVersionRow.version.desc()).limit(limit))
        return [version_of(row) for row in rows][::-1]

    def published(self, numbers: Iterable[tuple[str, int]]) -> Sequence[EmbeddingVersion]:
        """Return the versions with these tasks and numbers, by task and number, including those of deleted tasks.

        Numbers that were never published are left out.
        """
        distinct = sorted(set(numbers))
        number = EmbeddingVersionRow.task, EmbeddingVersionRow.version
        every = select(EmbeddingVersionRow).order_by(*number)  # this order lets SQLite use the index
        versions = [version_of(row) for (row,) in rows_of_pairs(self._session, every, number, distinct)]
        return sorted(versions, key=lambda version: (version.task, version.version))

    def living(self, task: str, number: int) -> EmbeddingVersion | None:
        """Return a version; None if the task was deleted or never had this number."""
        statement = _of_living_tasks().where(EmbeddingVersionRow.task == task, EmbeddingVersionRow.version == number)
        row = self._session.scalars(statement).one_or_none()
        return None if row is None else version_of(row)

    def of_job(self, job_id: str) -> EmbeddingVersion | None:
        """Return the version that a job published, preferably the final one, or None."""
        row = EmbeddingVersionRow
        of_both = select(row).where(row.job == job_id).order_by(row.provisional).limit(1)
        published = self._session.scalars(of_both).one_or_none()
        return None if published is None else version_of(published)

    def provisional_of(self, job_id: str) -> EmbeddingVersion | None:
        """Return the provisional version that a job published, or None."""
        row = EmbeddingVersionRow
        first = self._session.scalars(select(row).where(row.job == job_id, row.provisional)).one_or_none()
        return None if first is None else version_of(first)


def files_of(version: EmbeddingVersion) -> list[str]:
    """The digests of the artifacts that a version is made of."""
    return [digest for digest in (version.artifact, version.readout, version.lesson) if digest is not None]


def published_facts(version: EmbeddingVersion) -> dict[str, Any]:
    """Return the webhook document of a new version."""
    named = (
        "task",
        "version",
        "embedding_digest",
        "base_digest",
        "hypernetwork_version",
        "dataset_digest",
        "weak",
        "provisional",
        "job",
    )
    return {name: getattr(version, name) for name in named}


def rows_of_pairs(
    session: Session, statement: Select[*tuple[Any, ...]], columns: Sequence[Any], pairs: Sequence[Any]
) -> Iterator[Row[*tuple[Any, ...]]]:
    """Yield the rows in which two columns equal one of the pairs, in chunks."""
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        yield from session.execute(statement.where(tuple_(*columns).in_(pairs[start : start + PAIRS_AT_ONCE])))


def _of_living_tasks() -> Select[EmbeddingVersionRow]:
    return (
        select(EmbeddingVersionRow)
        .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
        .where(TaskRow.deleted_at.is_(None))
    )


def version_of(row: EmbeddingVersionRow) -> EmbeddingVersion:
    """Return the dataclass of a row."""
    return record_of(EmbeddingVersion, row, mixed_from=row.mixed_from or {})
