"""Use case: rebuild descendants of a deleted task from their own data, as if the task had never existed.

Everything happens in the transaction that deletes the task: heads go back to the newest hypernetwork without it,
descendants are marked, and jobs are queued to rebuild the versions that aliases point to. A rebuilt version replaces
the marked one when it is published; until then, the marked one is served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from onboard.contract.deleting import CannotRebuild, Rebuilding, Restored, RevertedHead, UnlearningDocument
from onboard.domain.dataset import label_key, label_text
from onboard.domain.descent import Descent
from onboard.domain.init import InitKind
from onboard.domain.job import JobSpec, JobState
from onboard.domain.methods import LINEAR
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.errors import NotFoundError
from onboard.registry.audit import actor
from onboard.registry.bases import BaseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.unlearning import UnlearningRepository
from onboard.registry.versions import VersionRepository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass
class Unlearning:
    """The consequences for descendants of a deleted task.

    Args:
        restored: aliased versions that were carried from a version that does not descend.
        removed: deleted versions without an alias.
        queues: queues with new jobs.
        artifacts: artifacts that may be unused now, see `Removed`.
    """

    reverted: list[RevertedHead] = field(default_factory=list)
    rebuilding: list[Rebuilding] = field(default_factory=list)
    restored: list[Restored] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    cannot: list[CannotRebuild] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    artifacts: dict[str, float] = field(default_factory=dict)

    def to_document(self) -> UnlearningDocument:
        """Return its part of the result of `onboard tasks delete --json`."""
        return UnlearningDocument(
            reverted=tuple(self.reverted), rebuilding=tuple(self.rebuilding), restored=tuple(self.restored),
            removed=tuple(self.removed), cannot=tuple(self.cannot),
        )  # fmt: skip


def unlearn(session: Session, task: str, descendants: Descent, aliases: Mapping[str, Sequence[str]]) -> Unlearning:
    """Remove the task's influence from all descendants, as described above.

    Args:
        session: a write transaction that also deletes the task.
        task: the deleted task.
        aliases: of every version, by reference.
    """
    return _Work(session, task, descendants, aliases).done()


@dataclass
class _Work:
    session: Session
    task: str
    descendants: Descent
    aliases: Mapping[str, Sequence[str]]
    known: dict[str, EmbeddingVersion] = field(default_factory=dict)  # existing descendants
    result: Unlearning = field(default_factory=Unlearning)

    def done(self) -> Unlearning:
        registry = UnlearningRepository(self.session)
        self.known = {
            reference: version for reference in self.descendants.versions if (version := self._version(reference))
        }
        rebuilt: dict[str, list[EmbeddingVersion]] = {}
        registry.mark(self.task, self.descendants.versions, self.descendants.hypernetworks)
        self._revert_heads(registry)
        for version in sorted(self.known.values(), key=lambda version: version.created_at):
            if version.reference not in self.aliases:
                self.result.removed.append(version.reference)
                continue
            origin = self._origin(version)
            if origin.reference not in self.known:
                registry.replace(version.task, [version.reference], origin.version)
                self.result.restored.append(Restored(version=version.reference, to=origin.reference))
            else:
                rebuilt.setdefault(origin.reference, []).append(version)
        for reference, replaced in rebuilt.items():
            self._rebuild(self.known[reference], [version.reference for version in replaced])
        registry.remove(self.result.removed)
        self.result.artifacts = registry.artifacts
        return self.result

    def _revert_heads(self, registry: UnlearningRepository) -> None:
        bases = BaseRepository(self.session)
        for digest in sorted({base for base, _ in self.descendants.hypernetworks}):
            head = bases.get(digest).head
            if (digest, head) not in self.descendants.hypernetworks:
                continue
            unmarked = registry.unmarked(digest)
            # Only within its line; versions that were reverted before are not restored.
            nearest = next(
                hypernetwork.version for hypernetwork in bases.line(digest, head) if hypernetwork.version in unmarked
            )
            bases.set_head(digest, nearest, expected_head=head)
            self.result.reverted.append(RevertedHead(base_digest=digest, from_=head, to=nearest))

    def _version(self, reference: str) -> EmbeddingVersion | None:
        named = Reference.parse(reference)
        assert named.version is not None
        return VersionRepository(self.session).living(named.task, named.version)

    def _origin(self, version: EmbeddingVersion) -> EmbeddingVersion:
        """Return the nearest version that it was carried from and that does not descend.

        Otherwise the version that learned its numbers, or the last existing one on the way there.
        """
        while version.kind == "carried" and version.reference in self.known:
            before = self.known.get(version.parent) or self._version(version.parent)
            if before is None:
                break
            version = before
        return version

    def _rebuild(self, version: EmbeddingVersion, references: list[str]) -> None:
        jobs = JobRepository(self.session)
        earlier_jobs = [
            job for job in jobs.list(task=version.task, limit=1000)
            if set(references) <= set(job.spec.replaces)
        ]  # fmt: skip
        for waiting in earlier_jobs:
            if waiting.state in (JobState.QUEUED, JobState.RUNNING):
                self.result.rebuilding.append(Rebuilding(versions=tuple(references), job=waiting.id))
                return
        learned = self._learned(version)
        before = jobs.get(learned) if learned is not None else next(iter(earlier_jobs), None)
        why = self._trouble(version) if before else "no job of this service learned it, so its rows are unknown"
        if before is None or why:
            self.result.cannot += [CannotRebuild(version=reference, why=why) for reference in references]
            return
        request = self._request(_readout_alone(_relabeled(before.spec, version), version), references)
        job, _ = jobs.add(
            request, queue=before.queue, priority=before.priority, owner=actor(),
            time_limit_seconds=before.time_limit_seconds,
        )  # fmt: skip
        self.result.rebuilding.append(Rebuilding(versions=tuple(references), job=job.id))
        self.result.queues.add(job.queue)

    def _learned(self, version: EmbeddingVersion) -> str | None:
        """Return the job that learned its numbers; for a renamed label, that of the previous version."""
        while version.job is None and version.kind == "relabeled":
            before = self.known.get(version.parent) or self._version(version.parent)
            if before is None:
                break
            version = before
        return version.job

    def _request(self, spec: JobSpec, references: list[str]) -> JobSpec:
        """Return the original request, without an init that no longer exists."""
        options = {**spec.options, "replaces": references}
        gone = {self.task, *(reference.partition("@")[0] for reference in self.descendants.versions)}
        again = replace(spec, new_labels=False, options=options)
        if spec.init.partition("@")[0] not in gone:
            return again
        return replace(again, init=InitKind.AUTO.value).pinned_to(None)

    def _trouble(self, version: EmbeddingVersion) -> str:
        """Return why it cannot be rebuilt; empty if it can."""
        try:
            SnapshotRepository(self.session).get(version.dataset_digest)
        except NotFoundError:
            return "its dataset is missing"
        task = TaskRepository(self.session).get(version.task)
        if _labels(task.kind, task.labels) != _labels(version.task_kind, version.labels):
            return "the labels of its task have changed"
        return ""


def _readout_alone(spec: JobSpec, version: EmbeddingVersion) -> JobSpec:
    """Return the request for the readout alone if the version is one that its job has not confirmed."""
    if not version.provisional:
        return spec
    return replace(spec, method=LINEAR, tune_hypernetwork="never", options={**spec.options, "fast": True})


def _relabeled(spec: JobSpec, version: EmbeddingVersion) -> JobSpec:
    """Return the original request with the rows of a version with labels renamed since."""
    if version.kind != "relabeled":
        return spec
    prefixes = tuple(f"{label_text(label)}=" for label in version.labels)
    written = [
        description for description in spec.options.get("label_description", ()) if description.startswith(prefixes)
    ]
    options = {**spec.options, "label_description": written} if written else {
        name: value for name, value in spec.options.items() if name != "label_description"
    }  # fmt: skip
    return replace(spec, dataset=version.dataset_digest, options=options)


def _labels(kind: str, labels: Sequence[Any]) -> tuple[str, frozenset[str]]:
    return kind, frozenset(map(label_key, labels))
