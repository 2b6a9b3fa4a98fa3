"""Embedding versions: immutable once published, by one transaction that also ends the job."""

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
from onboard.registry.aliases import AliasRepository, names_version
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

# of a method that this release knows
HAS_EMBEDDING: Final = EmbeddingVersionRow.method.in_(WITH_EMBEDDING)
PAIRS_AT_ONCE: Final = 5_000  # two parameters each; a statement takes 32,766 of them in SQLite, 65,535 in PostgreSQL


@dataclass(frozen=True, slots=True)
class Startable:
    """A version that a new task could start from, and the packed fingerprint of its dataset, if it has one."""

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
        """Publish the next version of the task and end its job as succeeded: all of it, or nothing.

        A job that rebuilds versions without a deleted task replaces them: aliases that named one name the new version.

        Args:
            draft: the version with `job` set; its number and time are filled in here.
            task: the task as it will be; made when it is new.
            attempt: the fencing token of the job.
            result: the job's result document; its "version" is filled in here.
            move_latest: whether `latest` moves to it. It always names the first version.
            present: what `latest` has to name when it moves (compare and swap); 0 means nothing yet.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
            PreconditionFailedError: `latest` names another version than `present`.
            ConflictError: the task has another label set, and `new_labels` is false.
        """
        assert draft.job is not None
        claims = ClaimRepository(self._session)
        # first, so that a late attempt hears that it is late, and of nothing else
        replaced = claims.hold(draft.job, attempt).spec.options.get("replaces", ())
        moves = move_latest and not replaced
        version = self.add(draft, task, move_latest=moves, present=present, new_labels=new_labels)
        OutboxRepository(self._session).add(PUBLISHED, published_facts(version))
        if replaced and LATEST in UnlearningRepository(self._session).replace(task.name, replaced, version.version):
            result = {**result, "latest": {"alias": LATEST, "moved": True, "reason": REBUILT}}
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
        """Publish the next version of the task while its job goes on; arguments and errors as of `publish`."""
        assert draft.job is not None
        assert draft.provisional
        claims = ClaimRepository(self._session)
        claims.hold(draft.job, attempt)  # first, for the reason that `publish` gives
        version = self.add(draft, task, move_latest=move_latest, present=present, new_labels=new_labels)
        OutboxRepository(self._session).add(PUBLISHED, published_facts(version))
        moved = self._aliases.find(task.name, LATEST) == version.version
        message = f"{version.reference} is published as provisional: its readout already answers, and the job continues"
        facts = {"provisional": True, "version": version.version, "latest": moved}
        claims.append(draft.job, attempt, "note", message, stage=Stage.READOUT, numbers=facts)
        return version

    def confirm(self, job: str, attempt: int, result: dict[str, Any]) -> EmbeddingVersion | None:
        """Make the job's provisional version its final one, and end the job as succeeded: both, or nothing.

        Returns:
            The version without its mark; None, and nothing has changed, where the job has no provisional version.

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
        """Insert the next version of the task, without a job to end (shipped sources, imports).

        Raises:
            PreconditionFailedError: `latest` names another version than `present`.
            ConflictError: the task has another label set, and `new_labels` is false; or the hypernetwork that it is
                pinned to, or learned under, was collected meanwhile; or what it started from is being unlearned.
        """
        assert draft.task == task.name
        for needed in sorted({draft.hypernetwork_version, draft.origin}):
            hold_hypernetwork(self._session, draft.base_digest, needed)
        require_not_unlearning(self._session, draft.parents)
        self._tasks.put(task, new_labels=new_labels)  # holds the task's lock: numbers are given out one by one
        number = self.next_number(task.name)
        size = self._size_of(draft)
        values = {**asdict(draft), "version": number, "created_at": database_now(), "stored_bytes": size}
        row = self._session.scalars(insert(EmbeddingVersionRow).values(values).returning(EmbeddingVersionRow)).one()
        self._session.execute(update(TaskRow).where(TaskRow.name == task.name).values(last_version=number))
        if draft.job is not None:
            QuotaRepository(self._session).charge_job(draft.job, files_of(draft))
        if move_latest or self._aliases.find(task.name, LATEST) is None:
            announce = draft.kind != "source"  # what a base ships with is no news
            self._aliases.move(task.name, LATEST, number, expected=present, reason="published", announce=announce)
        return replace(draft, version=number, created_at=row.created_at, stored_bytes=size)

    def _size_of(self, draft: EmbeddingVersion) -> int | None:
        """Bytes of its files together."""
        files = ArtifactRow.digest.in_([digest for digest in (draft.artifact, draft.readout) if digest is not None])
        size = self._session.scalar(select(func.sum(ArtifactRow.size_bytes)).where(files))
        return None if size is None else int(size)

    def next_number(self, task: str) -> int:
        """The number that the task's next version gets; sure only while the task's lock is held."""
        last = self._session.scalars(select(TaskRow.last_version).where(TaskRow.name == task)).one_or_none()
        return (last or 0) + 1

    def resolve(self, reference: str | Reference) -> EmbeddingVersion:
        """The version that `task`, `task@latest`, `task@v3` or `task@alias` names. Raises InputError, NotFoundError."""
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
        """Raises NotFoundError that says so, where a job that is queued or runs will publish the task."""
        job = self._session.execute(
            select(JobRow.id, JobRow.state).where(JobRow.task == named.task, IS_OPEN).order_by(JobRow.number).limit(1)
        ).one_or_none()
        if job is not None:
            where = "its job is queued" if job.state == JobState.QUEUED else "its job runs"
            raise NotFoundError("version-not-yet-learned", task=named.task, job=job.id, named=named, where=where)

    def list(
        self, *, task: str | None = None, base_digest: str | None = None, latest_only: bool = False
    ) -> Sequence[EmbeddingVersion]:
        """Versions by task and number, those of deleted tasks left out.

        Args:
            latest_only: only what `latest` names, one per task.
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
        """What a new task could start from: of every task its aliased versions on the base, or the newest if none is.

        What was carried stands for the versions that it was carried from: their numbers are the same. Versions of
        methods that make no embedding are none to start from.
        """
        statement = (
            select(
                EmbeddingVersionRow.task,
                EmbeddingVersionRow.version,
                EmbeddingVersionRow.fingerprint,
                EmbeddingVersionRow.embedding_digest,
                EmbeddingVersionRow.learned_under,
                exists().where(names_version()).label("aliased"),
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
            chosen = [row for row in of_task if row.aliased] or of_task[-1:]
            carried = {row.embedding_digest: row.version for row in chosen if row.learned_under is not None}
            startable += [
                Startable(row.task, row.version, row.fingerprint)
                for row in chosen
                if row.version >= carried.get(row.embedding_digest, 0)
            ]
        return startable

    def require_startable(self, reference: str) -> None:
        """Raise ConflictError where nothing may start from a version: it is being rebuilt without a deleted task."""
        require_not_unlearning(self._session, [reference])

    def newest(self, task: str, limit: int, before: int | None = None) -> Sequence[EmbeddingVersion]:
        """The last `limit` versions of a task, or those before version `before`, by number."""
        statement = _of_living_tasks().where(EmbeddingVersionRow.task == task)
        if before is not None:
            statement = statement.where(EmbeddingVersionRow.version < before)
        rows = self._session.scalars(statement.order_by(EmbeddingVersionRow.version.desc()).limit(limit))
        return [version_of(row) for row in rows][::-1]

    def published(self, numbers: Iterable[tuple[str, int]]) -> Sequence[EmbeddingVersion]:
        """The versions of these tasks and numbers, by task and number; those of deleted tasks too.

        What was never published is left out.
        """
        distinct = sorted(set(numbers))
        number = EmbeddingVersionRow.task, EmbeddingVersionRow.version
        every = select(EmbeddingVersionRow).order_by(*number)  # in its order SQLite goes by the index
        versions = [version_of(row) for (row,) in rows_of_pairs(self._session, every, number, distinct)]
        return sorted(versions, key=lambda version: (version.task, version.version))

    def living(self, task: str, number: int) -> EmbeddingVersion | None:
        """The version of this number, or None where the task was deleted or never had it."""
        statement = _of_living_tasks().where(EmbeddingVersionRow.task == task, EmbeddingVersionRow.version == number)
        row = self._session.scalars(statement).one_or_none()
        return None if row is None else version_of(row)

    def of_job(self, job_id: str) -> EmbeddingVersion | None:
        """The version that a job published, or None; of two the final one."""
        row = EmbeddingVersionRow
        of_both = select(row).where(row.job == job_id).order_by(row.provisional).limit(1)
        published = self._session.scalars(of_both).one_or_none()
        return None if published is None else version_of(published)

    def provisional_of(self, job_id: str) -> EmbeddingVersion | None:
        """The provisional version that a job published, or None."""
        row = EmbeddingVersionRow
        first = self._session.scalars(select(row).where(row.job == job_id, row.provisional)).one_or_none()
        return None if first is None else version_of(first)


def files_of(version: EmbeddingVersion) -> list[str]:
    """The digests of the artifacts that a version is made of."""
    return [digest for digest in (version.artifact, version.readout, version.lesson) if digest is not None]


def published_facts(version: EmbeddingVersion) -> dict[str, Any]:
    """What webhooks tell of a new version."""
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
    """The rows of a statement whose two columns are one of the pairs, however many of these there are."""
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        yield from session.execute(statement.where(tuple_(*columns).in_(pairs[start : start + PAIRS_AT_ONCE])))


def _of_living_tasks() -> Select[EmbeddingVersionRow]:
    return (
        select(EmbeddingVersionRow)
        .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
        .where(TaskRow.deleted_at.is_(None))
    )


def version_of(row: EmbeddingVersionRow) -> EmbeddingVersion:
    """The domain's version of a row."""
    return record_of(EmbeddingVersion, row, mixed_from=row.mixed_from or {})
