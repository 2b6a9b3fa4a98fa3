"""An answer of a task's version, as it is computed and as it comes over HTTP; or why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onboard.domain.dataset import Label
    from onboard.errors import OnboardError


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer.

    Args:
        label: as it was submitted; a number for a regression; of a task with several labels per text the text that
            stands for their set (`onboard.domain.label_set`), which is in `chosen` as well.
        probability: of the label; for a regression, of the most probable bucket; for several labels that of the least
            sure decision about one of them.
        task, version: what answered.
        probabilities: of every label, in the task's order (of every bucket for a regression). A service tells them only
            where they were asked for; else they are empty.
        weak: whether the version is no better than the commonest label.
        labels: what the probabilities are of; for a regression the buckets' values.
        unknown: whether the text is unlike the task's data; None where that was not asked.
        chosen: the labels of the answer, of a task with several labels per text; None of any other task.
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

    def to_json(self, *, probabilities: bool = False) -> dict[str, Any]:
        """The answer as `predict --json` prints it, and with `--probabilities`."""
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
        return {**answer, "weak": self.weak, "probabilities": listed}


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A row that cannot be answered, beside others that are.

    Args:
        task, ref: what was asked.
        error: why: no such task or version, another base, damaged bytes.
    """

    task: str
    ref: str
    error: OnboardError

    def to_json(self, *, probabilities: bool = False) -> dict[str, Any]:  # noqa: ARG002 - as of an answer
        """The row as `predict --json` prints it."""
        return {"task": self.task, "ref": self.ref, "error": self.error.outside.to_json()}


Outcome = Prediction | Unanswered


def all_answered(outcomes: Iterable[Outcome]) -> list[Prediction]:
    """The answers. Raises the error of the first row that has none."""
    answers = []
    for outcome in outcomes:
        if isinstance(outcome, Unanswered):
            raise outcome.error
        answers.append(outcome)
    return answers
