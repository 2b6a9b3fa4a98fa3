"""How many tasks of each kind are made, and how often each kind is trained on."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

KINDS: Final = ("sources", "renamed", "restricted", "merged", "joined", "topics", "form", "style", "pairs")


class KindCounts(BaseModel):
    """One kind of tasks.

    Args:
        share: of the steps, relative to the other kinds; 0 leaves the kind out.
        tasks: maximum number of tasks; if there are more, the seed decides which are kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(ge=0)
    tasks: int = Field(ge=0)


_NONE: Final = KindCounts(share=0, tasks=0)


class CurriculumCounts(BaseModel):
    """The section [curriculum] of a recipe.

    Args:
        topic_levels: number of clusters at each level of granularity.
        most_rows: maximum number of rows of a derived task.
        fewest_rows: derived tasks with fewer rows are left out.
        most_of_a_family: largest share of the sources' steps for one family.
        sources and the other KINDS: counts of each kind; kinds that are not named are left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic_levels: tuple[int, ...]
    most_rows: int = Field(ge=1, default=12000)
    fewest_rows: int = Field(ge=2, default=200)
    most_of_a_family: float = Field(gt=0, le=1, default=1.0)
    sources: KindCounts
    renamed: KindCounts = _NONE
    restricted: KindCounts = _NONE
    merged: KindCounts = _NONE
    joined: KindCounts = _NONE
    topics: KindCounts = _NONE
    form: KindCounts = _NONE
    style: KindCounts = _NONE
    pairs: KindCounts = _NONE

    def of(self, kind: str) -> KindCounts:
        """Return the counts of one of KINDS."""
        counts: KindCounts = getattr(self, kind)
        return counts
