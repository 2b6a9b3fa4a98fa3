"""What a run over files is asked for, and what its answers are written as."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from onboard.data.text_stream import BadRow
from onboard.data.texts import TextRow
from onboard.domain.dataset import Label
from onboard.domain.names import Reference
from onboard.domain.prediction import Prediction
from onboard.domain.printable import printable_json
from onboard.domain.task import AliasNames, labels_called

COLUMNS: Final = ("label", "probability", "task", "version")
_COLUMNS: Final = (*COLUMNS, "weak", "probabilities")  # with --probabilities


@dataclass(frozen=True, slots=True)
class BulkQuestion:
    """What every row is asked.

    Args:
        asked: references as they were given.
        pinned: the versions that they named when the run began; these answer to its end.
        text_fields: columns of the text or of the two texts; empty means the usual names.
        labels: that answers are chosen from; empty means all.
        probabilities: whether every label's probability is written.
        names: of each pinned version, pairs of a label and what the alias calls it that was asked for; empty where none
            calls any otherwise.
    """

    asked: tuple[str, ...]
    pinned: tuple[str, ...]
    text_fields: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    probabilities: bool = False
    names: tuple[AliasNames, ...] = ()

    def inputs(self, row: TextRow) -> list[dict[str, Any]]:
        """What a row asks a predictor or a service, one input a task."""
        references = [Reference.parse(reference) for reference in self.pinned]
        return [
            {**row.texts, "task": named.task, "ref": named.ref, **self._chosen(place)}
            for place, named in enumerate(references)
        ]

    def _chosen(self, place: int) -> dict[str, Any]:
        """The labels that answers of one version are chosen from, as the version has them."""
        if not self.labels:
            return {}
        own = [(name, label) for label, name in self._names(place)]
        return {"labels": list(labels_called(self.labels, own))}

    def _names(self, place: int) -> AliasNames:
        return self.names[place] if self.names else ()

    def called(self, answers: Sequence[Prediction]) -> list[Prediction]:
        """Answers of the pinned versions, in their order, with the names that the aliases have for labels."""
        return [_called(answer, self._names(place)) for place, answer in enumerate(answers)]

    def same(self, other: BulkQuestion) -> bool:
        """Whether both ask the same, whatever the names mean now."""
        mine, its = asdict(self), asdict(other)
        means_now = {"pinned": (), "names": ()}
        return {**mine, **means_now} == {**its, **means_now}

    def to_json(self) -> dict[str, Any]:
        """As the plan of a run keeps it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> BulkQuestion:
        """Read what `to_json` wrote. Raises KeyError, TypeError for anything else."""
        lists = {name: tuple(document[name]) for name in ("asked", "pinned", "text_fields", "labels")}
        names = tuple(document.get("names", ()))
        return cls(**lists, probabilities=bool(document["probabilities"]), names=names)


def _called(answer: Prediction, names: AliasNames) -> Prediction:
    if not names:
        return answer
    (label,) = labels_called([answer.label], names)
    return replace(answer, label=label, labels=labels_called(answer.labels, names))


def answered_line(row: TextRow, answers: Sequence[Prediction], probabilities: bool) -> str:
    """One line of JSON: the row's columns, and its answer; of several tasks `answers`, by task."""
    documents = [answer.to_json(probabilities=probabilities) for answer in answers]
    answer = documents[0] if len(documents) == 1 else {"answers": documents}
    sets = ("labels",) if "labels" in answer else ()
    return _line({**renamed(row.given, ("error", "answers", *sets)), **answer})


def bad_line(row: BadRow) -> str:
    """The same of a row that cannot be answered: where it stands, and why."""
    return _line({"error": row.to_json()})


def renamed(given: Mapping[str, object], more: Iterable[str] = ()) -> dict[str, Any]:
    """The columns of a row that stand beside its answer; one that is called like a part of it becomes `given_…`.

    Args:
        more: further parts that answers have here.
    """
    row, taken = {}, {*_COLUMNS, *more}
    for column, value in given.items():
        name = column
        while name in taken or (name != column and name in given):
            name = f"given_{name}"
        row[name] = _plain(value)
    return row


def _line(document: Mapping[str, Any]) -> str:
    """One line to every reader, also to those that end one at a line separator of Unicode."""
    return printable_json(json.dumps(document, ensure_ascii=False)) + "\n"


def _plain(value: object) -> Any:
    """A value of any format as JSON has it."""
    match value:
        case bytes():
            return value.decode("utf-8", "replace")
        case float() if not math.isfinite(value):
            return None
        case None | str() | bool() | int() | float():
            return value
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
    return str(value)  # a date, a duration
