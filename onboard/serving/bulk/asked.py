"""What a run over files is asked for, and what its answers are written as."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from onboard.data.text_stream import BadRow
from onboard.data.texts import TextRow
from onboard.domain.dataset import Label
from onboard.domain.names import Reference
from onboard.domain.prediction import Prediction
from onboard.domain.printable import printable_json

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
    """

    asked: tuple[str, ...]
    pinned: tuple[str, ...]
    text_fields: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    probabilities: bool = False

    def inputs(self, row: TextRow) -> list[dict[str, Any]]:
        """What a row asks a predictor or a service, one input a task."""
        chosen = {"labels": list(self.labels)} if self.labels else {}
        references = [Reference.parse(reference) for reference in self.pinned]
        return [{**row.texts, "task": named.task, "ref": named.ref, **chosen} for named in references]

    def same(self, other: BulkQuestion) -> bool:
        """Whether both ask the same, whatever the names mean now."""
        mine, its = asdict(self), asdict(other)
        return {**mine, "pinned": ()} == {**its, "pinned": ()}

    def to_json(self) -> dict[str, Any]:
        """As the plan of a run keeps it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> BulkQuestion:
        """Read what `to_json` wrote. Raises KeyError, TypeError for anything else."""
        lists = {name: tuple(document[name]) for name in ("asked", "pinned", "text_fields", "labels")}
        return cls(**lists, probabilities=bool(document["probabilities"]))


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
