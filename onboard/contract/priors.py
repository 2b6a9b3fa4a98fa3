"""Priors: their versions, the tasks that they were fitted to, and the contribution of each task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from onboard.contract.document import Document, Partial
from onboard.domain.prior import Form


class PriorDocument(Document):
    """One version of a base's prior."""

    base_digest: str
    form: Form
    version: int
    digest: Annotated[str, Field(description="Digest of its base, form and lessons.")]
    fitted: Annotated[str, Field(description="Digest of its numbers on the machine that fitted it.")]
    lessons: int
    left_out: Annotated[tuple[str, ...], Field(description="Tasks with lessons that cannot be used.")]
    reason: str
    created_at: str | None
    retired_at: str | None
    unlearning: Annotated[str | None, Field(description="A deleted task that it was fitted to.")]
    parent: int | None
    head: bool


class Contribution(Document):
    """The contribution of one earlier task: its share of the prior's weights; the shares of all tasks sum to 1."""

    task: str
    share: float


class PriorUse(Partial):
    """The contributions of earlier tasks to a version's readout.

    form, version, digest: of the prior.
    left_out: tasks that the prior was fitted without: this one, and those that share rows with it.
    scale: how far the readout was drawn towards the prior; 0 if held-out rows are better predicted without it.
    tasks: the five with the largest contributions.
    lessons: number of tasks that the prior was fitted to.
    rows, metric, with_prior, without: accuracy in points of the readout with the prior and without it, on `rows` that
        were predicted without themselves; absent if there are too few of them.
    """

    form: Form = "single"
    version: int = 0
    digest: str = ""
    left_out: tuple[str, ...] = ()
    scale: float = 0.0
    lessons: int = 0
    tasks: tuple[Contribution, ...] = ()
    rows: int | None = None
    metric: str | None = None
    with_prior: float | None = None
    without: float | None = None

    @property
    def gain(self) -> float | None:
        """Accuracy in points that the prior added; None if too few rows were predicted."""
        return None if self.with_prior is None or self.without is None else self.with_prior - self.without


class HelpedDocument(Document):
    """The contributions of earlier tasks to a version."""

    version: Annotated[str, Field(description="TASK@vN")]
    created_at: str | None
    prior: Annotated[PriorUse, Field(description="The same as `prior` in the job's document.")]


class PriorList(Document):
    """The versions of a base's priors."""

    base: str
    base_digest: str
    priors: tuple[PriorDocument, ...]
    helped: Annotated[tuple[HelpedDocument, ...], Field(description="The newest 200 versions, oldest first.")]


class TaughtDocument(Document):
    """A lesson that a version is fitted to."""

    task: str
    version: int
    lesson: Annotated[str, Field(description="Digest of its file; for a shipped task, of the base's lessons.")]
    shipped: bool


class PriorDetail(PriorDocument):
    """A version with its lessons."""

    base: str
    taught: tuple[TaughtDocument, ...]
