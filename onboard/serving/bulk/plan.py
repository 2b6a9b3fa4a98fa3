"""The plan of a run: its files, their state when it began, and the division of their rows into shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from onboard.contract.requests import PredictionRequest, label_places
from onboard.data.text_stream import BadRow, stream_texts
from onboard.data.texts import TextRow
from onboard.domain.counting import counted
from onboard.domain.dataset import Label
from onboard.domain.names import Reference
from onboard.domain.task import texts_taken
from onboard.domain.untrusted_json import parse_json
from onboard.errors import DamagedError, InputError
from onboard.serving.bulk.asked import BulkQuestion
from onboard.serving.bulk.inputs import InputFile, Inputs, require_unchanged
from onboard.serving.bulk.outputs import Outputs

PLAN: Final = "plan.json"
SHARD_ROWS: Final = 4_096
SHARD_CHARACTERS: Final = 8 << 20
_FORMAT: Final = 1
_CHECKED_EVERY: Final = 1_000  # rows between two calls of the checkpoint


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive rows of one file that are answered and written together.

    Args:
        number: from 0, in output order.
        file: index among the plan's files.
        first: number of rows of the file before it.
    """

    number: int
    file: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """Name of the file with its answers."""
        return f"part-{self.number:06d}.jsonl"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run; the same for all processes and restarts.

    Args:
        pairs: whether the rows have two texts.
    """

    question: BulkQuestion
    pairs: bool
    files: tuple[InputFile, ...]
    shards: tuple[Shard, ...]

    @property
    def rows(self) -> int:
        """Number of rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bad_rows(self) -> int:
        """Number of rows without a valid text."""
        return sum(file.bad_rows for file in self.files)

    def summary(self) -> dict[str, Any]:
        """Return the figures for documents."""
        return {
            "versions": list(self.question.pinned),
            "files": len(self.files),
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "shards": len(self.shards),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored with the answers."""
        files = [[file.name, file.size_bytes, file.changed, file.rows, file.bad_rows] for file in self.files]
        shards = [[shard.file, shard.first, shard.rows] for shard in self.shards]
        question = self.question.to_json()
        return {"format": _FORMAT, "question": question, "pairs": self.pairs, "files": files, "shards": shards}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Plan:
        """Read the output of `to_json`. Raises KeyError, TypeError, ValueError if it is invalid."""
        if document["format"] != _FORMAT:
            raise ValueError(f"plans of format {document['format']!r} are not known here")
        files = tuple(InputFile(name, size, str(changed), *rows) for name, size, changed, *rows in document["files"])
        shards = tuple(Shard(number, *shard) for number, shard in enumerate(document["shards"]))
        return cls(BulkQuestion.from_json(document["question"]), bool(document["pairs"]), files, shards)


def read_plan(outputs: Outputs) -> Plan | None:
    """Read the plan of the output; None if there is none. Raises DamagedError."""
    content = outputs.read(PLAN)
    if content is None:
        return None
    try:
        return Plan.from_json(parse_json(content))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedError("plan-damaged", place=outputs.place, reason=error) from error


def plan_text(plan: Plan) -> str:
    """Return the content of the plan's file."""
    return json.dumps(plan.to_json(), ensure_ascii=False)


def make_plan(
    question: BulkQuestion,
    inputs: Inputs,
    files: Sequence[InputFile] | None = None,
    checkpoint: Callable[[], None] = lambda: None,
) -> Plan:
    """Read all files once, without keeping them, and divide their rows into shards.

    Args:
        files: current state of the inputs, if available.
        checkpoint: called now and then; may raise to stop.

    Raises:
        NotFoundError, InputError: there are no files, or some have one text per row and others two.
        DatasetError: a file cannot be read to its end.
        ConflictError: a file changed meanwhile.
    """
    planned: list[InputFile] = []
    shards: list[Shard] = []
    widths: dict[int, str] = {}
    present = files or inputs.files()
    for before in present:
        name, counting = before.name, _Counting(len(planned), len(shards))
        for row in _streamed(inputs, name, question, len(present) > 1):
            counting.add(row)
            if isinstance(row, TextRow):
                widths.setdefault(len(row.texts), name)
            if counting.rows % _CHECKED_EVERY == 0:
                checkpoint()
        require_unchanged(before, inputs)
        shards += counting.finished()
        planned.append(replace(before, rows=counting.rows, bad_rows=counting.bad_rows))
        if len(widths) > 1:
            raise InputError("input-mixes-pairs", files=[widths[1], widths[2]], single=widths[1], width=widths[2])
    if not shards:
        raise InputError("input-without-rows", files=len(planned))
    return Plan(question, 2 in widths, tuple(planned), tuple(shards))


def _streamed(inputs: Inputs, name: str, question: BulkQuestion, may_be_empty: bool) -> Iterator[TextRow | BadRow]:
    return stream_texts(inputs.path(name), question.text_fields, shown=inputs.shown(name), may_be_empty=may_be_empty)


class _Counting:
    """Divides the rows of one file into shards with limits on rows and characters."""

    def __init__(self, file: int, shards: int) -> None:
        self._file, self._number = file, shards
        self._shards: list[Shard] = []
        self._first = self._characters = 0
        self.rows = self.bad_rows = 0

    def add(self, row: TextRow | BadRow) -> None:
        """Count one more row."""
        self.rows += 1
        if isinstance(row, BadRow):
            self.bad_rows += 1
        else:
            self._characters += sum(map(len, row.texts.values()))
        if self.rows - self._first == SHARD_ROWS or self._characters >= SHARD_CHARACTERS:
            self._cut()

    def finished(self) -> list[Shard]:
        """Return the shards after the last row."""
        if self.rows > self._first:
            self._cut()
        return self._shards

    def _cut(self) -> None:
        shard = Shard(self._number + len(self._shards), self._file, self._first, self.rows - self._first)
        self._shards.append(shard)
        self._first, self._characters = self.rows, 0


def require_form(pairs: bool, takes: Mapping[str, bool | None]) -> None:
    """Raise InputError if a version takes two texts and the rows have one, or the reverse.

    Args:
        pairs: whether the rows have two.
        takes: whether each version takes two; None if unknown.
    """
    for reference, taken in takes.items():
        if taken is not None and taken != pairs:
            has = "two texts per row" if pairs else "one text per row"
            fields = "--text-field FIELD --text-field FIELD" if taken else "--text-field FIELD"
            raise InputError(
                "input-pairs-differ", task=reference, pairs=taken, taken=texts_taken(taken), has=has, fields=fields
            )


def require_all_answerable(plan: Plan) -> None:
    """Raise InputError where a row cannot be answered."""
    if plan.bad_rows:
        raise InputError(
            "rows-not-answerable", rows=plan.rows, bad_rows=plan.bad_rows, rows_shown=counted(plan.rows, "row")
        )


def require_labels(reference: str, chosen: Sequence[Label], labels: Sequence[Label]) -> None:
    """Raise InputError if `chosen` contains labels that the version does not have, or fewer than two.

    Args:
        chosen: labels to choose answers from; empty means all.
    """
    if chosen:
        label_places(1, PredictionRequest(Reference.parse(reference), "", None, tuple(chosen)), tuple(labels))


def rows_of(plan: Plan, inputs: Inputs, file: int) -> Iterator[TextRow | BadRow]:
    """Yield the rows of one of the plan's files, in order. Raises ConflictError: the file has changed; DatasetError."""
    planned = plan.files[file]
    require_unchanged(planned, inputs)
    return stream_texts(inputs.path(planned.name), plan.question.text_fields, shown=inputs.shown(planned.name))
