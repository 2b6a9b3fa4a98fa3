"""Delete all data of a task from the registry, in one transaction. Of its jobs, only states and times remain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update

from onboard.domain.descent import Root
from onboard.domain.job import JobSpec, JobState
from onboard.registry.aliases import AliasRepository, names_version
from onboard.registry.annotation_tables import AnnotationRow
from onboard.registry.annotations import AnnotationRepository
from onboard.registry.clock import database_now
from onboard.registry.database import overwrite_deleted
from onboard.registry.descent import BASE_OF_JOB, EMBEDDED_AT
from onboard.registry.events import EventRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.repository import Repository
from onboard.registry.requeue import queue_again
from onboard.registry.snapshots import DATASETS_OF_JOB, unnamed_snapshots
from onboard.registry.tables import (
    AliasMoveRow,
    AliasRow,
    BaseRow,
    EmbeddingVersionRow,
    JobEventRow,
    JobRow,
    SnapshotRow,
    StageOutputRow,
    TaskRow,
)
from onboard.registry.task_features import TaskFeatureRepository
from onboard.registry.webhook_tables import WebhookEventRow

_DELETED: Final = {"code": "deleted", "message": "Its task was deleted.", "remedy": ""}


@dataclass
class Removed:
    """The rows deleted with a task.

    Args:
        versions, jobs, datasets: numbers of rows.
        shared_with: other tasks with the same dataset, which keeps it.
        queues: queues with jobs of other tasks that were queued again, because they may have started from the task.
        artifacts: artifacts that may now be unused, and when the last row that needed them was written.
    """

    versions: int = 0
    jobs: int = 0
    datasets: int = 0
    shared_with: tuple[str, ...] = ()
    queues: frozenset[str] = frozenset()
    artifacts: dict[str, float] = field(default_factory=dict)

    def freed(self, rows: Sequence[tuple[str, float]]) -> None:
        """Record the artifacts of deleted rows, each with the time at which the row was written."""
        for digest, at in rows:
            self.artifacts[digest] = max(at, self.artifacts.get(digest, 0.0))


class DeletingRepository(Repository):
    """Deletes tasks."""

    def has_content(self, task: str) -> bool:
        """Return whether the task exists, or has versions, annotations or job requests left."""
        living = exists().where(TaskRow.name == task, TaskRow.deleted_at.is_(None))
        versions = exists().where(EmbeddingVersionRow.task == task)
        annotations = exists().where(AnnotationRow.task == task)
        return bool(
            self._session.scalar(select(or_(living, versions, annotations, exists().where(_has_request(task)))))
        )

    def is_shipped(self, task: str) -> bool:
        """Return whether a base was trained on the task."""
        versions = exists().where(EmbeddingVersionRow.task == task, EmbeddingVersionRow.kind == "source")
        shipped = exists().where(TaskRow.name == task, TaskRow.source)
        return bool(self._session.scalar(select(or_(versions, shipped))))

    def hold(self, root: Root) -> None:
        """Lock out publishing for the task or on its bases until the transaction ends."""
        self._session.execute(select(JobRow.id).where(JobRow.task == root.task).with_for_update())
        bases = select(BaseRow.digest).where(BaseRow.digest.in_(root.bases)).order_by(BaseRow.digest)
        self._session.execute(bases.with_for_update())

    def begin_again(self, root: Root, removed: Removed) -> None:
        """Queue other jobs on the task's bases again, and delete their stage outputs; see `remove`."""
        self._remove_stage_outputs(root.task, root.bases, removed)
        removed.queues = self._queue_again(root)

    def remove(self, root: Root) -> Removed:
        """Delete everything of the task: versions, aliases, datasets, and the requests and results of its jobs.

        Open jobs of the task are cancelled. Other jobs on its bases are queued again without their stage outputs,
        because they may have started from it. Call `hold` first.
        """
        overwrite_deleted(self._session)
        removed, task = Removed(), root.task
        self._session.execute(select(TaskRow.name).where(TaskRow.name == task).with_for_update())
        has_versions = select(exists().where(EmbeddingVersionRow.task == task))
        published, datasets = self._session.scalar(has_versions), self._datasets(task)  # after the lock
        self._end_jobs(root, removed)
        if published:
            self.begin_again(root, removed)
        else:
            self._remove_stage_outputs(task, frozenset(), removed)
        self.remove_versions(EmbeddingVersionRow.task == task, removed)
        removed.freed(TaskFeatureRepository(self._session).remove(task))
        AnnotationRepository(self._session).remove(task)
        for table in (AliasRow, AliasMoveRow):
            self._session.execute(delete(table).where(table.task == task))
        self._session.execute(delete(WebhookEventRow).where(WebhookEventRow.data["task"].as_string() == task))
        self._remove_snapshots(datasets, removed)
        empty: dict[str, Any] = {"labels": [], "words": [], "low": None, "high": None}
        deleted = func.coalesce(TaskRow.deleted_at, database_now())
        self._session.execute(update(TaskRow).where(TaskRow.name == task).values(deleted_at=deleted, **empty))
        return removed

    def remove_versions(self, which: ColumnElement[bool], removed: Removed) -> None:
        """Delete versions and the aliases that point to them, and end their use as canaries.

        No other transaction may be about to publish them.
        """
        row = EmbeddingVersionRow
        named = exists().where(which, names_version())
        self._session.execute(delete(AliasRow).where(named))
        canaries = select(AliasRow.task, AliasRow.alias).join(
            row, and_(AliasRow.task == row.task, AliasRow.canary == row.version)
        )
        for task, alias in self._session.execute(canaries.where(which)).all():
            AliasRepository(self._session).end_canary(task, alias, because="the version was deleted")
        gone = self._session.execute(
            delete(row).where(which).returning(row.artifact, row.readout, row.lesson, row.created_at)
        ).all()
        removed.versions += len(gone)
        removed.freed([(digest, at) for *files, at in gone for digest in files if digest is not None])

    def _datasets(self, task: str) -> dict[str, float]:
        """Return the datasets of its versions and jobs, and when each was last used."""
        row, measured = EmbeddingVersionRow, dict[str, float]()
        named = [(row.dataset_digest, row.created_at, row.task == task)]
        named += [(digest, JobRow.created_at, JobRow.task == task) for digest in DATASETS_OF_JOB]
        for digest, at, which in named:
            newest_of_each = select(digest, func.max(at)).where(which, digest.is_not(None)).group_by(digest)
            for name, newest in self._session.execute(newest_of_each):
                measured[name] = max(newest, measured.get(name, 0.0))
        return measured

    def _end_jobs(self, root: Root, removed: Removed) -> None:
        """Cancel open jobs and delete their requests and results. States and times remain."""
        task, mine = root.task, JobRow.task == root.task
        removed.jobs = self._session.scalars(select(func.count()).where(_has_request(task))).one()
        ended = (
            update(JobRow)
            .where(mine, JobRow.state.in_([JobState.QUEUED, JobState.RUNNING]))
            .values(state=JobState.CANCELLED, finished_at=database_now(), lease_expires_at=None)
            .returning(JobRow.id, JobRow.attempt)
        )
        for job, attempt in self._session.execute(ended).all():
            facts = {"error": {"code": _DELETED["code"]}}
            EventRepository(self._session).append(job, attempt, "state", JobState.CANCELLED, numbers=facts)
            LeaseRepository(self._session).give_back_all(job)
        of_mine = JobEventRow.job.in_(select(JobRow.id).where(mine))
        self._session.execute(delete(JobEventRow).where(of_mine, JobEventRow.kind != "state"))
        failed = select(JobEventRow.id, JobEventRow.numbers).where(
            of_mine, JobEventRow.numbers["error"].as_string().is_not(None)
        )
        for event, numbers in self._session.execute(failed).all():
            code_only = {**numbers, "error": {"code": (numbers.get("error") or {}).get("code")}}
            self._session.execute(update(JobEventRow).where(JobEventRow.id == event).values(numbers=code_only))
        bases = self._session.scalars(select(BASE_OF_JOB).where(mine).distinct()).all()
        for base in bases:
            named = {} if base is None else {"base_digest": base}
            dated = {EMBEDDED_AT: root.embedded[base]} if base in root.embedded else {}
            spec = JobSpec(task, "", options={**named, **dated}).to_json()
            same = BASE_OF_JOB.is_(None) if base is None else base == BASE_OF_JOB
            self._session.execute(update(JobRow).where(mine, same).values(spec=spec, key=None, result=None))
        self._session.execute(update(JobRow).where(mine, JobRow.state != JobState.SUCCEEDED).values(error=_DELETED))

    def _remove_stage_outputs(self, task: str, bases: frozenset[str], removed: Removed) -> None:
        """Delete stage outputs of the task's jobs and of all jobs on its bases, which may contain its embedding."""
        row = StageOutputRow
        jobs = select(JobRow.id).where(or_(JobRow.task == task, BASE_OF_JOB.in_(bases)))
        gone = self._session.execute(delete(row).where(row.job.in_(jobs)).returning(row.artifact, row.created_at))
        removed.freed([(artifact, at) for artifact, at in gone.all()])

    def _queue_again(self, root: Root) -> frozenset[str]:
        """Queue other jobs on its bases again. The current attempt does not count."""
        facts = {"reason": f"the task {root.task} was deleted, from which it might have started"}
        jobs_on_bases = and_(JobRow.task != root.task, BASE_OF_JOB.in_(root.bases))
        return frozenset(queue for _, _, queue in queue_again(self._session, jobs_on_bases, facts))

    def _remove_snapshots(self, datasets: dict[str, float], removed: Removed) -> None:
        """Delete datasets that nothing refers to any more. Those of other tasks are kept."""
        row = SnapshotRow
        statement = (
            delete(row)
            .where(row.digest.in_(datasets), unnamed_snapshots())
            .returning(row.digest, row.artifact, row.row_hashes, row.created_at)
        )
        gone = self._session.execute(statement).all()
        removed.datasets = len(gone)
        for digest, artifact, row_hashes, created_at in gone:
            at = max(created_at, datasets[digest])  # a dataset that is stored again keeps its row
            removed.freed([(artifact, at), (row_hashes, at)])
        removed.shared_with = self._owners(sorted(datasets.keys() - {snapshot.digest for snapshot in gone}))

    def _owners(self, datasets: Sequence[str]) -> tuple[str, ...]:
        named = [select(EmbeddingVersionRow.task).where(EmbeddingVersionRow.dataset_digest.in_(datasets))]
        named += [select(JobRow.task).where(digest.in_(datasets)) for digest in DATASETS_OF_JOB]
        return tuple(
            sorted({task for statement in named for task in self._session.scalars(statement)} if datasets else ())
        )


def _has_request(task: str) -> ColumnElement[bool]:
    """Condition: a job of the task still has its request."""
    return and_(JobRow.task == task, JobRow.spec["dataset"].as_string() != "")
