"""A prediction, or why there is none, as computed and as sent over HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onboard.domain.dataset import Label
    from onboard.errors import OnboardError


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction.

    Args:
        label: as submitted; a number for a regression. For several labels per text, it is the text that represents
            their set (`onboard.domain.label_set`), which is in `chosen` as well.
        probability: of the label; for a regression, of the most probable bucket; for several labels, of the least
            certain decision.
        probabilities: of every label, in the task's order (of every bucket for a regression). A service returns them
            only on request; otherwise they are empty.
        weak: whether the version is not better than the most frequent label.
        labels: labels that the probabilities belong to; for a regression the buckets' values.
        unknown: whether the text is unlike the task's data; None if not requested.
        chosen: labels of the answer, for tasks with several labels per text; else None.
        unmeasured: whether no rows show how good the version is.
    """

    label: Label
    probability: float
    task: str
    version: int
    probabilities: tuple[float, ...] = ()
    weak: bool = False
    labels: tuple[Label, ...] = ()
    unknown: bool | None = None
    chosen: tuple[Label, ...] | None = None
    unmeasured: bool = False

    def to_json(self, *, probabilities: bool = False) -> dict[str, Any]:
        """Return the prediction as printed by `predict --json`, optionally with all probabilities."""
        sets = {} if self.chosen is None else {"labels": list(self.chosen)}
        answer = {
            "label": self.label, **sets, "probability": self.probability, "task": self.task, "version": self.version,
        }  # fmt: skip
        if self.unknown is not None:
            answer["unknown"] = self.unknown
        if not probabilities:
            return answer
        shares = zip(self.labels, self.probabilities, strict=True)
        listed = [{"label": label, "probability": share} for label, share in shares]
        return {**answer, **self.marks(), "probabilities": listed}

    def marks(self) -> dict[str, bool]:
        """Return whether the version is weak; and that it is unmeasured, if so."""
        return {"weak": self.weak, **({"unmeasured": True} if self.unmeasured else {})}


@dataclass(frozen=True, slots=True)
class Unanswered:
    """An input that cannot be answered.

    Args:
        error: the reason: no such task or version, another base, damaged files.
    """

    task: str
    ref: str
    error: OnboardError

    def to_json(self, *, probabilities: bool = False) -> dict[str, Any]:  # noqa: ARG002 - as of an answer
        """Return the input as printed by `predict --json`."""
        return {"task": self.task, "ref": self.ref, "error": self.error.outside.to_json()}


Outcome = Prediction | Unanswered


def all_answered(outcomes: Iterable[Outcome]) -> list[Prediction]:
    """Return the answers. Raises the error of the first row without one."""
    answers = []
    for outcome in outcomes:
        if isinstance(outcome, Unanswered):
            raise outcome.error
        answers.append(outcome)
    return answers
