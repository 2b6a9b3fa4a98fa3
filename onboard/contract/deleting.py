"""The result of deleting a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from onboard.contract.document import Document, later

if TYPE_CHECKING:
    from onboard.domain.descent import Descent


class RemovedCounts(Document):
    """The number of removed records; `artifacts` counts files, and `bytes` is their size."""

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
    """A base that was reverted to a hypernetwork version that does not descend from the task."""

    base_digest: str
    from_: Annotated[int, Field(alias="from")]
    to: int


class Rebuilding(Document):
    """Versions that a job rebuilds. In a dry run, the job has no id."""

    versions: tuple[str, ...]
    job: str | None


class Restored(Document):
    """A carried version, and the original version that its aliases now name."""

    version: str
    to: str


class CannotRebuild(Document):
    """A version that stays as it is, and why."""

    version: str
    why: str


class UnlearningDocument(Document):
    """The changes to the descendants of the task."""

    reverted: tuple[RevertedHead, ...]
    rebuilding: tuple[Rebuilding, ...]
    restored: tuple[Restored, ...]
    removed: tuple[str, ...]
    cannot: tuple[CannotRebuild, ...]


class DeletedDocument(Document):
    """The records that were deleted with a task, and its descendants."""

    task: str
    deleted: bool
    dry_run: bool
    removed: RemovedCounts
    shared_with: tuple[str, ...]
    descendants: Descendants
    unlearning: UnlearningDocument | None
    shipped: bool = later(False, "Whether a base was trained on the task, so that it cannot be unlearned.")
