"""What deleting a task says."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class RemovedCounts(BaseModel):
    """How much went; `artifacts` are files, of so many bytes."""

    versions: int
    jobs: int
    datasets: int
    artifacts: int
    bytes: int


class DescendingVersion(BaseModel):
    """A version of another task that descends from the deleted one, and the aliases that name it."""

    version: str
    why: str
    aliases: list[str]


class DescendingHypernetwork(BaseModel):
    """A hypernetwork version that descends from the deleted task."""

    base_digest: str
    version: int
    why: str


class Descendants(BaseModel):
    """All that descends from the deleted task."""

    versions: list[DescendingVersion]
    hypernetworks: list[DescendingHypernetwork]


class RevertedHead(BaseModel, serialize_by_alias=True):
    """A base whose head went back to a hypernetwork version without the task."""

    base_digest: str
    from_: Annotated[int, Field(alias="from")]
    to: int


class Rebuilding(BaseModel):
    """Versions that a job rebuilds; of a dry run it has no id."""

    versions: list[str]
    job: str | None


class Restored(BaseModel):
    """A carried version whose aliases name the version again that it was carried from."""

    version: str
    to: str


class CannotRebuild(BaseModel):
    """A version that stays as it is, and why."""

    version: str
    why: str


class UnlearningDocument(BaseModel):
    """What becomes of the descendants."""

    reverted: list[RevertedHead]
    rebuilding: list[Rebuilding]
    restored: list[Restored]
    removed: list[str]
    cannot: list[CannotRebuild]


class DeletedDocument(BaseModel):
    """What went with a task, and what descends from it."""

    task: str
    deleted: bool
    dry_run: bool
    removed: RemovedCounts
    shared_with: list[str]
    descendants: Descendants
    unlearning: UnlearningDocument | None
