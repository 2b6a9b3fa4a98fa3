"""The question of a run over files, and the format of its answers."""

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
    """The question for every row.

    Args:
        asked: references as given.
        pinned: the versions that they named when the run began, which answer all rows.
        text_fields: columns of one or two texts; empty means the usual names.
        labels: labels to choose answers from; empty means all.
        probabilities: whether to write the probability of every label.
        names: per pinned version, pairs of a label and its name in the alias; empty if no label has another name.
    """

    asked: tuple[str, ...]
    pinned: tuple[str, ...]
    text_fields: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    probabilities: bool = False
    names: tuple[AliasNames, ...] = ()

    def inputs(self, row: TextRow) -> list[dict[str, Any]]:
        """Return the inputs for a predictor or a service, one per task."""
        references = [Reference.parse(reference) for reference in self.pinned]
        return [
            {**row.texts, "task": named.task, "ref": named.ref, **self._chosen(place)}
            for place, named in enumerate(references)
        ]

    def _chosen(self, place: int) -> dict[str, Any]:
        """Return the labels, as this version names them, that its answers are chosen from."""
        if not self.labels:
            return {}
        own = [(name, label) for label, name in self._names(place)]
        return {"labels": list(labels_called(self.labels, own))}

    def _names(self, place: int) -> AliasNames:
        return self.names[place] if self.names else ()

    def called(self, answers: Sequence[Prediction]) -> list[Prediction]:
        """Replace labels in answers of the pinned versions, in order, by the names that the aliases use."""
        return [_called(answer, self._names(place)) for place, answer in enumerate(answers)]

    def same(self, other: BulkQuestion) -> bool:
        """Compare two questions, independent of the versions that aliases name now."""
        mine, its = asdict(self), asdict(other)
        means_now = {"pinned": (), "names": ()}
        return {**mine, **means_now} == {**its, **means_now}

    def to_json(self) -> dict[str, Any]:
        """Return the form that a run's plan stores."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> BulkQuestion:
        """Read the output of `to_json`. Raises KeyError, TypeError if it is invalid."""
        lists = {name: tuple(document[name]) for name in ("asked", "pinned", "text_fields", "labels")}
        names = tuple(document.get("names", ()))
        return cls(**lists, probabilities=bool(document["probabilities"]), names=names)


def _called(answer: Prediction, names: AliasNames) -> Prediction:
    if not names:
        return answer
    (label,) = labels_called([answer.label], names)
    return replace(answer, label=label, labels=labels_called(answer.labels, names))


def answered_line(row: TextRow, answers: Sequence[Prediction], probabilities: bool) -> str:
    """Return a line of JSON: the row's columns and its answer, or `answers` by task if there are several."""
    documents = [answer.to_json(probabilities=probabilities) for answer in answers]
    answer = documents[0] if len(documents) == 1 else {"answers": documents}
    sets = ("labels",) if "labels" in answer else ()
    return _line({**renamed(row.given, ("error", "answers", *sets)), **answer})


def bad_line(row: BadRow) -> str:
    """Return a line of JSON for a row without a valid text: its place and the reason."""
    return _line({"error": row.to_json()})


def renamed(given: Mapping[str, object], more: Iterable[str] = ()) -> dict[str, Any]:
    """Return a row's columns for the output; columns named like a part of the answer become `given_…`.

    Args:
        more: further parts of the answers.
    """
    row, taken = {}, {*_COLUMNS, *more}
    for column, value in given.items():
        name = column
        while name in taken or (name != column and name in given):
            name = f"given_{name}"
        row[name] = _plain(value)
    return row


def _line(document: Mapping[str, Any]) -> str:
    """Return JSON without Unicode line separators, which some readers treat as line ends."""
    return printable_json(json.dumps(document, ensure_ascii=False)) + "\n"


def _plain(value: object) -> Any:
    """Convert a value of any format to JSON."""
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
    return str(value)  # a date or duration
