"""Drift of a task's texts: the sums of a week, compared with the training rows and with the week before."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from onboard.contract.document import Document

DifferenceName = Literal["labels", "confidence", "unknown", "features"]


class DriftDifference(Document):
    """One comparison, and the value expected by chance."""

    value: Annotated[float, Field(description="A stability index, a difference of shares, or a distance of means.")]
    chance: Annotated[float, Field(description="Chance alone exceeds this in 1 of 20 comparisons of that size.")]
    p: Annotated[float, Field(description="Probability of such a difference by chance.")]
    beyond_chance: Annotated[bool, Field(description="Whether it exceeds chance and is large enough to matter.")]


class DriftLabel(Document):
    """How often a label is answered, now and before."""

    label: str
    share: float
    share_before: float
    index: Annotated[float, Field(description="Population stability index of this label against all others.")]
    chance: Annotated[float, Field(description="Chance alone exceeds this in 1 of 20 comparisons of that size.")]


class DriftComparison(Document):
    """A week of texts compared with the training rows, or with the week before. Null if one of them is too small."""

    against: Literal["training", "week_before"]
    rows: Annotated[int, Field(description="Training rows, or texts of the week before.")]
    labels: Annotated[
        DriftDifference | None, Field(description="Population stability index of the answered labels.")
    ] = None
    confidence: Annotated[
        DriftDifference | None, Field(description="Population stability index of the histogram of confidence.")
    ] = None
    unknown: Annotated[
        DriftDifference | None, Field(description="Increase of the share of texts that are unlike the training rows.")
    ] = None
    features: Annotated[
        DriftDifference | None, Field(description="Distance of the means of the features, in units of their spread.")
    ] = None
    by_label: tuple[DriftLabel, ...] = ()
    left_out: Annotated[
        tuple[DifferenceName, ...],
        Field(
            description="Differences that raise no alarm, because cross-validated answers are not an exact reference."
        ),
    ] = ()


class DriftAlarm(Document):
    """An alarm for a week, at the time it was first raised."""

    at: str
    texts: Annotated[int, Field(description="Number of texts of the week at that time.")]
    training: Annotated[tuple[DifferenceName, ...], Field(description="Differences from the training rows.")]
    week_before: Annotated[tuple[DifferenceName, ...], Field(description="Differences from the week before.")]


class DriftWeek(Document):
    """The stored counts of a week's texts."""

    week: Annotated[str, Field(description="Its Monday.")]
    texts: int
    labels: Annotated[dict[str, float], Field(description="Share of the answers that name each label.")]
    confidence: Annotated[float | None, Field(description="Mean of the answers' probabilities.")]
    unknown: Annotated[float | None, Field(description="Share of the texts that are unlike the training rows.")]
    histogram: Annotated[
        tuple[int, ...],
        Field(description="Answers by confidence, between 0, .2, .3, .4, .5, .6, .7, .8, .9, .95, .98, .99, 1."),
    ]
    alarm: bool


class DriftDocument(Document):
    """The newest week of a version, compared with its training rows and with the week before."""

    task: str
    version: int
    recorded: Annotated[bool, Field(description="Whether the service keeps these numbers (ONBOARD_DRIFT).")]
    week: Annotated[str, Field(description="Monday of the newest week with texts.")]
    texts: Annotated[int, Field(description="Texts of that week; a repeated text counts once a day and process.")]
    alarm: DriftAlarm | None
    comparisons: tuple[DriftComparison, ...]
    weeks: Annotated[tuple[DriftWeek, ...], Field(description="The last weeks with texts, oldest first.")]
    advice: tuple[str, ...]
