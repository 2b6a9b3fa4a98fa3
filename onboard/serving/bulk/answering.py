"""Answer the shards of a plan. Shards are written atomically, so any process can continue a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from filelock import Timeout

from onboard.contract.predictions import BulkRun
from onboard.data.text_stream import BadRow
from onboard.data.texts import TextRow
from onboard.domain.prediction import Prediction
from onboard.errors import ConflictError, InputError
from onboard.serving.bulk.asked import BulkQuestion, answered_line, bad_line
from onboard.serving.bulk.inputs import InputFile, Inputs, inputs_of, require_unchanged
from onboard.serving.bulk.outputs import Outputs, outputs_at, write_whole
from onboard.serving.bulk.plan import PLAN, Plan, Shard, make_plan, plan_text, read_plan, rows_of

PredictBatch = Callable[[Sequence[Mapping[str, Any]]], Sequence[Prediction]]
_LOOK_SECONDS: Final = 1.0  # interval between checks for shards of other processes
_ROWS_AT_ONCE: Final = 256  # rows per call of the predictor


@dataclass(frozen=True, slots=True)
class BulkDone:
    """The result of a run.

    Args:
        output: its folder or URL.
        found_shards: shards that existed when this process began.
        added_shards: shards that it added; other processes may have added the rest.
    """

    output: str
    plan: Plan
    found_shards: int
    added_shards: int

    def to_document(self) -> BulkRun:
        """Return what `predict --json` prints."""
        return BulkRun(output=self.output, shards_before=self.found_shards, **self.plan.summary())


def predict_files(
    source: str | Path,
    output: str | Path,
    question: BulkQuestion,
    answer: PredictBatch,
    on_plan: Callable[[Plan], None] = lambda _: None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> BulkDone:
    """Answer each row of a file, or of all files of a folder, in order, into `part-000000.jsonl` and so on.

    Writes one line per row: its columns and its answer, or `error` if it has no valid text. The same call again
    continues after the existing shards. Concurrent calls on one machine share the shards of a folder. An object store
    has no locks; use a job to share the work there.

    Args:
        source: file, folder, pattern or URL.
        output: folder or URL of the answers: new, empty, or of the same run.
        question: the question for every row; a resumed run keeps its pinned versions.
        answer: answers a few inputs; its errors end the run, which can be resumed.
        on_plan: called with the plan before anything is answered or written; may raise to refuse it.
        on_rows: called with the number of newly answered rows, here or elsewhere.

    Raises:
        NotFoundError, DatasetError: the source does not exist or cannot be read to its end.
        InputError: the output is inside the source, or rows do not match the versions.
        ConflictError: the output contains something else, or the source has changed.
        NotAllowedError, StorageError: the output cannot be written.
    """
    inputs, outputs = inputs_of(source), outputs_at(output)
    require_apart(inputs, outputs)
    with contextlib.closing(inputs), outputs.in_our_words():
        plan = _planned(inputs, outputs, question, on_plan)
        run = _Run(plan, inputs, outputs, answer, on_rows)
        before = run.look(outputs.names())
        added = run.answer_shards()
        while run.absent:  # other processes hold them, or stopped while they did
            time.sleep(_LOOK_SECONDS)
            added += run.answer_shards()
    return BulkDone(outputs.place, plan, before, added)


def _planned(inputs: Inputs, outputs: Outputs, question: BulkQuestion, on_plan: Callable[[Plan], None]) -> Plan:
    """Return the existing plan, or make and write it."""
    with outputs.planning():
        begun = begun_plan(inputs, outputs, question)
        plan = begun or make_plan(question, inputs)
        on_plan(plan)
        if begun is None:
            write_plan(plan, outputs)
    return plan


def require_apart(inputs: Inputs, outputs: Outputs) -> None:
    """Raise InputError if answers would be written into the source."""
    if inputs.holds(outputs.place):
        raise InputError("output-inside-input", output=outputs.place, place=inputs.place)


def begun_plan(
    inputs: Inputs, outputs: Outputs, question: BulkQuestion, files: Sequence[InputFile] | None = None
) -> Plan | None:
    """Return the plan of the output if it belongs to this run; None for an empty output.

    Args:
        files: current state of the inputs, if available.

    Raises:
        ConflictError: the output contains something else or another run's answers, or the inputs have changed.
        DamagedError: the plan cannot be read.
    """
    plan = read_plan(outputs)
    if plan is None:
        if outputs.names():
            raise ConflictError("output-has-other-files", output=outputs.place)
        return None
    if not plan.question.same(question):
        raise ConflictError("output-of-other-request", output=outputs.place)
    present = {file.name: file for file in files or inputs.files()}
    if list(present) != [file.name for file in plan.files]:
        raise ConflictError("output-of-other-input", output=outputs.place, place=inputs.place)
    for file in plan.files:
        require_unchanged(file, inputs, present[file.name])
    return plan


def write_plan(plan: Plan, outputs: Outputs) -> None:
    """Write the plan into the output, where later processes find it."""
    write_whole(outputs, PLAN, iter([plan_text(plan)]), 0, lambda part: outputs.publish(part, PLAN))


class ShardRows:
    """The rows of a plan's shards. In order, each file is read once; going back reopens it."""

    def __init__(self, plan: Plan, inputs: Inputs) -> None:
        self._plan, self._inputs = plan, inputs
        self._file, self._place = -1, 0
        self._rows: Iterator[TextRow | BadRow] = iter(())

    def of(self, shard: Shard) -> Iterator[TextRow | BadRow]:
        """Return the rows of a shard. Raises ConflictError: the file has changed; DatasetError: it cannot be read."""
        if shard.file != self._file or self._place > shard.first:
            self._rows, self._file, self._place = rows_of(self._plan, self._inputs, shard.file), shard.file, 0
        for _ in islice(self._rows, shard.first - self._place):
            self._place += 1
        for row in islice(self._rows, shard.rows):
            self._place += 1
            yield row


def answer_shard(
    shard: Shard,
    plan: Plan,
    inputs: Inputs,
    outputs: Outputs,
    lines: Iterator[str],
    *,
    attempt: int = 0,
    publish: Callable[[Path], None],
) -> None:
    """Write a shard's lines; publish them once they are complete and the source file is unchanged.

    Raises:
        ConflictError: the file has changed or has fewer rows than planned.
    """
    written = 0

    def counted() -> Iterator[str]:
        nonlocal written
        for line in lines:
            written += 1
            yield line

    def confirmed(part: Path) -> None:
        require_unchanged(plan.files[shard.file], inputs)
        if written != shard.rows:
            raise ConflictError("shard-rows-differ", shard=shard.name, written=written, rows=shard.rows)
        publish(part)

    write_whole(outputs, shard.name, counted(), attempt, confirmed)


def answered_lines(
    plan: Plan, rows: Iterator[TextRow | BadRow], answer: PredictBatch, on_rows: Callable[[int], None]
) -> Iterator[str]:
    """Return the lines of rows, in order; only a few rows are in memory at a time."""
    question = plan.question
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        good = [row for row in some if isinstance(row, TextRow)]
        outcomes = iter(answer([asked for row in good for asked in question.inputs(row)]) if good else ())
        for row in some:
            if isinstance(row, BadRow):
                yield bad_line(row)
            else:
                answers = question.called(list(islice(outcomes, len(question.pinned))))
                yield answered_line(row, answers, question.probabilities)
        on_rows(len(some))


class _Run:
    """One process that works on a plan. It owns a shard while it holds the shard's lock, at most as long as
    it lives.
    """

    def __init__(
        self, plan: Plan, inputs: Inputs, outputs: Outputs, answer: PredictBatch, on_rows: Callable[[int], None]
    ) -> None:
        self._plan, self._inputs, self._outputs = plan, inputs, outputs
        self._answer, self._on_rows, self._rows = answer, on_rows, ShardRows(plan, inputs)
        self.absent = set(plan.shards)

    def look(self, names: Collection[str]) -> int:
        """Return how many of these shards other processes have finished since the last call."""
        come = {shard for shard in self.absent if shard.name in names}
        self.absent -= come
        self._on_rows(sum(shard.rows for shard in come))
        return len(come)

    def answer_shards(self) -> int:
        """Answer the missing shards that no other process holds; return their number."""
        added = 0
        for shard in self._plan.shards:
            if shard in self.absent:
                with contextlib.suppress(Timeout), self._outputs.own(shard.name):
                    added += self._answer_shard(shard)
        return added

    def _answer_shard(self, shard: Shard) -> int:
        there = self._outputs.has(shard.name)
        if there:
            self.look([shard.name])
        else:
            lines = answered_lines(self._plan, self._rows.of(shard), self._answer, self._on_rows)
            answer_shard(
                shard, self._plan, self._inputs, self._outputs, lines,
                publish=lambda part: self._outputs.publish(part, shard.name),
            )  # fmt: skip
            self.absent.discard(shard)
        self._outputs.disown(shard.name)
        return 0 if there else 1
