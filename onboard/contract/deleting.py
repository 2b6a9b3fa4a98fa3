"""What deleting a task says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from onboard.contract.document import Document

if TYPE_CHECKING:
    from onboard.domain.descent import Descent


class RemovedCounts(Document):
    """How much went; `artifacts` are files, of so many bytes."""

    versions: int
    jobs: int
    datasets: int
    artifacts: int
    bytes: int


class DescendingVersion(Document):
    """A version of another task that descends from the deleted one, and the aliases that name it."""

    version: str
    why: str
    aliases: tuple[str, ...]


class DescendingHypernetwork(Document):
    """A hypernetwork version that descends from the deleted task."""

    base_digest: str
    version: int
    why: str


class Descendants(Document):
    """All that descends from the deleted task."""

    versions: tuple[DescendingVersion, ...]
    hypernetworks: tuple[DescendingHypernetwork, ...]

    @classmethod
    def of_descent(cls, descent: Descent, aliases: Mapping[str, Sequence[str]]) -> Self:
        """Return the document of a descent.

        Args:
            aliases: aliases by reference of their version.
        """
        return cls(
            versions=tuple(
                DescendingVersion(version=reference, why=why, aliases=tuple(aliases.get(reference, ())))
                for reference, why in sorted(descent.versions.items())
            ),
            hypernetworks=tuple(
                DescendingHypernetwork(base_digest=base, version=number, why=why)
                for (base, number), why in sorted(descent.hypernetworks.items())
            ),
        )


class RevertedHead(Document):
    """A base whose head went back to a hypernetwork version without the task."""

    base_digest: str
    from_: Annotated[int, Field(alias="from")]
    to: int


class Rebuilding(Document):
    """Versions that a job rebuilds; of a dry run it has no id."""

    versions: tuple[str, ...]
    job: str | None


class Restored(Document):
    """A carried version whose aliases name the version again that it was carried from."""

    version: str
    to: str


class CannotRebuild(Document):
    """A version that stays as it is, and why."""

    version: str
    why: str


class UnlearningDocument(Document):
    """What becomes of the descendants."""

    reverted: tuple[RevertedHead, ...]
    rebuilding: tuple[Rebuilding, ...]
    restored: tuple[Restored, ...]
    removed: tuple[str, ...]
    cannot: tuple[CannotRebuild, ...]


class DeletedDocument(Document):
    """What went with a task, and what descends from it."""

    task: str
    deleted: bool
    dry_run: bool
    removed: RemovedCounts
    shared_with: tuple[str, ...]
    descendants: Descendants
    unlearning: UnlearningDocument | None
