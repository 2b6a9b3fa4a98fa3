"""Use case: detect whether the texts that a version answers have changed, from the sums that serving stores.

A week's sums are compared with the version's training rows and with the previous week. Comparisons take place at fixed
numbers of texts, so that all comparisons of a week cause a false alarm in at most one week of 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from onboard.contract.drift import DriftAlarm, DriftComparison, DriftDifference, DriftDocument, DriftLabel, DriftWeek
from onboard.domain.dataset import label_text
from onboard.domain.drift import DriftDay, day_of, days_of, moment_of, monday_of, together, week_of
from onboard.domain.label_set import MULTILABEL
from onboard.domain.names import Reference
from onboard.domain.webhook import DRIFTED
from onboard.errors import DamagedError, NotFoundError, StorageError
from onboard.registry.clock import read_clock
from onboard.registry.drift import DriftRepository
from onboard.registry.outbox import OutboxRepository
from onboard.statistics.drift import EVERY, Sums, Training, beyond_level, compare, look_at
from onboard.storage.drift import training_in
from onboard.versions.describe import resolve

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.domain.task import EmbeddingVersion
    from onboard.registry.services import Services
    from onboard.statistics.drift import Difference, Differences

WEEKS: Final = 13  # number of weeks shown
TRAINING: Final = "training"
WEEK_BEFORE: Final = "week_before"
_FEW_LABELS: Final = 3  # maximum number of labels in a sentence


@dataclass(frozen=True)
class Texts:
    """The facts about a version that drift detection needs.

    Args:
        training: sums of its training rows; None for versions of earlier releases.
        several: whether an answer may contain several labels.
    """

    task: str
    version: int
    training: Training | None
    several: bool


@dataclass(frozen=True)
class _Compared:
    """The sums of a week and the earlier sums to compare with.

    Args:
        against: TRAINING or WEEK_BEFORE.
        names: differences that may raise an alarm.
    """

    against: Literal["training", "week_before"]
    now: Sums
    before: Sums
    differences: Differences
    names: Sequence[str]


def add_texts(session: Session, day: int, sums: Mapping[tuple[str, int], Sums], known: Sequence[Texts]) -> None:
    """Add sums to a day, and compare if the week has reached the next number of texts.

    An alarm is recorded once per version and week, and sent to webhooks.

    Args:
        known: the versions of the sums.
    """
    repository = DriftRepository(session)
    existing = set(repository.add(day, {number: sums_of_version.to_json() for number, sums_of_version in sums.items()}))
    for texts in known:
        if (texts.task, texts.version) in existing:
            _look(session, repository, day, texts)


def _look(session: Session, repository: DriftRepository, day: int, texts: Texts) -> None:
    week, number = week_of(day), (texts.task, texts.version)
    counted, looked, alarmed = repository.standing(*number, week)
    look = look_at(counted)
    if look <= looked:
        return
    significant: dict[str, list[str]] = {}
    if not alarmed:
        days = repository.days(*number, days_of(week - 1)[0], days_of(week)[-1])
        comparisons = _comparisons(days, week, texts)
        beyond = beyond_level([(compared.differences, compared.names) for compared in comparisons], look)
        significant = {compared.against: names for compared, names in zip(comparisons, beyond, strict=True) if names}
    alarm = {"at": read_clock(session), "texts": counted, "found": significant} if significant else None
    repository.set_look(number, day, look, alarm)
    if alarm is not None:
        data = {"task": texts.task, "version": texts.version, "week": monday_of(week), "texts": counted, **significant}
        OutboxRepository(session).add(DRIFTED, {TRAINING: [], WEEK_BEFORE: [], **data})


def _comparisons(days: Sequence[DriftDay], week: int, texts: Texts) -> list[_Compared]:
    """Compare the week with the version's rows and with the previous week."""
    now = _sums_of(days, week)
    if now is None:
        return []
    comparisons = []
    if texts.training is not None:
        before, names = texts.training.sums, texts.training.names
        comparisons.append(_Compared(TRAINING, now, before, compare(now, before, several=texts.several), names))
    if (earlier := _sums_of(days, week - 1)) is not None:
        comparisons.append(_Compared(WEEK_BEFORE, now, earlier, compare(now, earlier, several=texts.several), EVERY))
    return comparisons


def _sums_of(days: Sequence[DriftDay], week: int) -> Sums | None:
    try:
        stored = together(day.sums for day in days if week_of(day.day) == week)
        return None if stored is None else Sums.from_json(stored)
    except (KeyError, TypeError, ValueError):  # sums of another release
        return None


def drift_of(services: Services, reference: str, *, weeks: int = WEEKS) -> DriftDocument:
    """Return whether the texts of a version's newest week differ from its training rows and from the previous week.

    Args:
        reference: task, with a version or an alias.
        weeks: maximum number of weeks in the result.

    Raises:
        NotFoundError: the task or version does not exist.
    """
    named = Reference.parse(reference)
    (version,) = resolve(services.database, named)
    with services.database.read() as session:
        today = day_of(read_clock(session))
        first = days_of(week_of(today) - weeks)[0]
        days = DriftRepository(session).days(version.task, version.version, first, today + 1)
    texts = Texts(version.task, version.version, _training(services, version), version.task_kind == MULTILABEL)
    labels = _labels(version)
    listed = _weeks(days, labels)[-weeks:]
    week = week_of(days[-1].day) if days else week_of(today)
    compared = [_comparison(week_comparison, labels) for week_comparison in _comparisons(days, week, texts)]
    alarm = _alarm(days, week)
    return DriftDocument(
        task=version.task, version=version.version, recorded=services.settings.drift, week=monday_of(week),
        texts=sum(day.texts for day in days if week_of(day.day) == week), alarm=alarm,
        comparisons=tuple(compared), weeks=tuple(listed),
        advice=tuple(_advice(version, alarm, compared, listed, recorded=services.settings.drift)),
    )  # fmt: skip


def _training(services: Services, version: EmbeddingVersion) -> Training | None:
    try:
        return training_in(services.read(version.artifact))
    except (NotFoundError, DamagedError, StorageError):
        return None


def _labels(version: EmbeddingVersion) -> list[str]:
    """Return the labels of its answers; for a regression, the centers of its buckets."""
    if version.low is None or version.high is None:
        return [label_text(label) for label in version.labels]
    from onboard.data.regression import Buckets

    return [f"{value:.3g}" for value in Buckets(version.low, version.high).values]


def _weeks(days: Sequence[DriftDay], labels: Sequence[str]) -> list[DriftWeek]:
    weeks = []
    for week in sorted({week_of(day.day) for day in days}):
        sums = _sums_of(days, week)
        if sums is None:
            continue
        shares = dict(zip(labels, sums.shares.tolist(), strict=False))
        weeks.append(DriftWeek(
            week=monday_of(week), texts=sum(day.texts for day in days if week_of(day.day) == week), labels=shares,
            confidence=sums.sureness, unknown=sums.unknown / sums.judged if sums.judged else None,
            histogram=tuple(sums.confidence.tolist()), alarm=_alarm(days, week) is not None,
        ))  # fmt: skip
    return weeks


def _alarm(days: Sequence[DriftDay], week: int) -> DriftAlarm | None:
    for day in days:
        if week_of(day.day) == week and day.alarm is not None:
            significant: Mapping[str, Any] = day.alarm["found"]
            return DriftAlarm(
                at=moment_of(day.alarm["at"]), texts=day.alarm["texts"],
                training=tuple(significant.get(TRAINING, ())), week_before=tuple(significant.get(WEEK_BEFORE, ())),
            )  # fmt: skip
    return None


def _comparison(compared: _Compared, labels: Sequence[str]) -> DriftComparison:
    now, before, differences = compared.now, compared.before, compared.differences
    by_label = [
        DriftLabel(label=label, share=share, share_before=share_before, index=index, chance=chance)
        for label, share, share_before, (index, chance) in zip(
            labels, now.shares.tolist(), before.shares.tolist(), differences.by_label, strict=False
        )
    ]
    made = {name: _difference(difference) for name, difference in differences.named().items()}
    return DriftComparison(
        against=compared.against, rows=max(before.answered, before.read), by_label=tuple(by_label),
        left_out=tuple(name for name in made if name not in compared.names), **made,
    )  # fmt: skip


def _difference(difference: Difference) -> DriftDifference:
    return DriftDifference(
        value=difference.value, chance=difference.chance, p=difference.p,
        beyond_chance=difference.matters and difference.value > difference.chance,
    )  # fmt: skip


def _advice(
    version: EmbeddingVersion,
    alarm: DriftAlarm | None,
    compared: Sequence[DriftComparison],
    weeks: Sequence[DriftWeek],
    *,
    recorded: bool,
) -> list[str]:
    """Return advice in sentences."""
    named, task = version.reference, version.task
    if not recorded:
        return ["Nothing is recorded, because ONBOARD_DRIFT is false here."]
    if not weeks:
        return [f"No texts were answered by {named} in the last {WEEKS} weeks, or they were not recorded."]
    if alarm is None:
        return []
    found = {*alarm.training, *alarm.week_before}
    advice = []
    if "unknown" in found or "features" in found:
        advice.append(
            f"Texts of another kind arrive. Answer a sample of this week's texts with `onboard predict {task} "
            "--input FILE --unknown`, and label those that are unknown first."
        )
    if "labels" in found and (changed := _changed(compared)):
        advice.append(f"The answered labels have changed: {changed}. Label texts that get these answers.")
    if "confidence" in found:
        advice.append("The confidence of the answers has changed. Label the texts with the least probable answers.")
    advice.append(f"Add the labeled rows: `onboard add {task} --dataset FILE`, with `--new-labels` if no label fits.")
    return advice


def _changed(compared: Sequence[DriftComparison]) -> str:
    """Return the labels with the largest changes of their shares, with both shares."""
    for comparison in compared:
        beyond = [label for label in comparison.by_label if label.index > label.chance]
        if beyond:
            most = sorted(beyond, key=lambda label: -label.index)[:_FEW_LABELS]
            return ", ".join(
                f"{label.label} ({100 * label.share_before:.0f}% → {100 * label.share:.0f}%)" for label in most
            )
    return ""
