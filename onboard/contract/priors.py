"""Priors: their versions, what taught them, what they contributed."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from onboard.contract.document import Document
from onboard.domain.prior import Form


class PriorDocument(Document):
    """One version of a base's prior."""

    base_digest: str
    form: Form
    version: int
    digest: Annotated[str, Field(description="Of all that it is made of: base, form and lessons.")]
    fitted: Annotated[str, Field(description="Digest of its numbers on the machine that fitted it.")]
    lessons: int
    left_out: Annotated[tuple[str, ...], Field(description="Tasks whose lesson has numbers that are not finite.")]
    reason: str
    created_at: str | None
    retired_at: str | None
    unlearning: Annotated[str | None, Field(description="The deleted task that it was fitted to.")]
    parent: int | None
    head: bool


class HelpedDocument(Document):
    """What earlier tasks contributed to a version."""

    version: Annotated[str, Field(description="TASK@vN")]
    created_at: str | None
    prior: Annotated[dict[str, Any], Field(description="As `prior` of the job's document.")]


class PriorList(Document):
    """The versions of a base's priors."""

    base: str
    base_digest: str
    priors: tuple[PriorDocument, ...]
    helped: Annotated[tuple[HelpedDocument, ...], Field(description="Of the newest 200 versions, oldest first.")]


class TaughtDocument(Document):
    """A lesson that a version was fitted to."""

    task: str
    version: int
    lesson: Annotated[str, Field(description="Digest of its file; of a shipped task that of the base's lessons.")]
    shipped: bool


class PriorDetail(PriorDocument):
    """One version with its lessons."""

    base: str
    taught: tuple[TaughtDocument, ...]
