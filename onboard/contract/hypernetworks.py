"""The sequence of a base's hypernetwork versions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from onboard.contract.document import Document, Metrics
from onboard.contract.guard import GuardVerdict


class HypernetworkDocument(Document):
    """One hypernetwork version of a base."""

    base_digest: str
    version: int
    artifact: Annotated[str | None, Field(description="Null if its bytes were deleted by gc.")]
    digest: Annotated[str, Field(description="Digest of its file, even if the file was deleted.")]
    parent: Annotated[
        int | None,
        Field(
            description="The version that it was tuned from. If `metrics.tuning.moved_from` is set, it was tuned from "
            "that one and moved onto the parent."
        ),
    ]
    job: str | None
    metrics: Metrics
    created_at: str | None
    collected_at: str | None
    head: bool
    pinned: Annotated[int, Field(description="Number of task versions that are pinned to it.")]


class PinnedDocument(Document):
    """The tasks and versions that are pinned to a hypernetwork version."""

    tasks: int
    in_use: Annotated[tuple[str, ...], Field(description="Pinned versions that an alias names, at most 200.")]
    learned: Annotated[int, Field(description="Versions that were learned under it and carried to a later one.")]


class HypernetworkDetail(HypernetworkDocument):
    """A hypernetwork version with everything pinned to it, and the guard's verdict with a row per earlier task."""

    base: str
    pinned_by: PinnedDocument
    guard: GuardVerdict | None


class HypernetworkReverted(Document):
    """The hypernetwork version that a base uses now, and the one that it used before."""

    base: str
    base_digest: str
    version: int
    previous: int


class HypernetworkList(Document):
    """The hypernetwork versions of a base, oldest first."""

    base: str
    base_digest: str
    hypernetworks: tuple[HypernetworkDocument, ...]
