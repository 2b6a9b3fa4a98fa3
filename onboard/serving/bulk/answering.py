"""Answering a plan's shards: each is written whole or not at all, so that whoever comes next goes on where it was."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from onboard.data.text_stream import BadRow
from onboard.data.texts import TextRow
from onboard.domain.prediction import Prediction
from onboard.errors import ConflictError, InputError, NotAllowedError, StorageError
from onboard.serving.bulk.asked import BulkQuestion, answered_line, bad_line
from onboard.serving.bulk.plan import (
    PLAN,
    Plan,
    Shard,
    input_path,
    input_paths,
    make_plan,
    plan_bytes,
    read_plan,
    require_unchanged,
    rows_of,
)

Answer = Callable[[Sequence[Mapping[str, Any]]], Sequence[Prediction]]
_LOCK: Final = ".lock"  # while a run is planned
_PLAN_PART: Final = f".{PLAN}.part"
_ANEW: Final = "Start anew: --output another folder"
_LOOK_SECONDS: Final = 1.0  # between two looks at what other processes do
_ROWS_AT_ONCE: Final = 256  # that are asked together


@dataclass(frozen=True, slots=True)
class BulkDone:
    """What a run has written.

    Args:
        found_shards: that were there when this process began.
        added_shards: that it added; others may have added the rest.
    """

    output: Path
    plan: Plan
    found_shards: int
    added_shards: int

    def to_json(self) -> dict[str, Any]:
        """As `predict --json` prints it."""
        plan = self.plan
        return {
            "output": str(self.output),
            "versions": list(plan.question.pinned),
            "files": len(plan.files),
            "rows": plan.rows,
            "bad_rows": plan.bad_rows,
            "shards": len(plan.shards),
            "shards_before": self.found_shards,
        }


def predict_files(
    source: Path,
    output: Path,
    question: BulkQuestion,
    answer: Answer,
    on_plan: Callable[[Plan], None] = lambda _: None,
    on_rows: Callable[[int], None] = lambda _: None,
) -> BulkDone:
    """Answer every row of a file, or of all files of a folder, in their order, into `part-000000.jsonl` and so on.

    A line is written for every row: its columns and its answer, or `error` where it holds no text that can be answered.
    The same call again goes on after the shards that are there; made by several processes at once, they share the rest.

    Args:
        source: file or folder.
        output: folder of the answers; a new one, an empty one, or that of the same run.
        question: what every row is asked; where the run has begun already, its pinned versions stay.
        answer: answers a few inputs; what it raises ends the run, which can go on later.
        on_plan: told what is going to be done, before anything is answered or written; may raise to refuse it.
        on_rows: told how many rows more are answered, here or elsewhere.

    Raises:
        NotFoundError, DatasetError: the source is not there, or cannot be read to its end.
        InputError: the output lies in the source, or rows do not fit what they ask.
        ConflictError: the output holds something else; the source is not what it was.
        NotAllowedError, StorageError: the output cannot be written.
    """
    _require_apart(source, output)
    with _written_to(output):
        plan = _planned(source, output, question, on_plan)
        run = _Run(plan, source, output, answer, on_rows)
        before = run.look(plan.shards)
        added = run.answer_shards()
        while run.absent:  # another process has them, or had them and is gone
            time.sleep(_LOOK_SECONDS)
            added += run.answer_shards()
    return BulkDone(output, plan, before, added)


def _planned(source: Path, output: Path, question: BulkQuestion, on_plan: Callable[[Plan], None]) -> Plan:
    """What the first process to come plans, or has planned."""
    with FileLock(output / _LOCK):
        begun = _begun(source, output, question)
        plan = begun or make_plan(question, source)
        on_plan(plan)
        if begun is None:
            _write_plan(plan, output)
    return plan


class _Run:
    """One process at work on a plan. A shard is its own while it holds the lock, at most as long as it lives."""

    def __init__(self, plan: Plan, source: Path, output: Path, answer: Answer, on_rows: Callable[[int], None]) -> None:
        self._plan, self._source, self._output = plan, source, output
        self._answer, self._on_rows, self._by_file = answer, on_rows, plan.shards_by_file()
        self.absent = set(plan.shards)

    def look(self, shards: Iterable[Shard]) -> int:
        """How many of these shards have come, since the last look, from elsewhere."""
        come = {shard for shard in self.absent.intersection(shards) if (self._output / shard.name).is_file()}
        self.absent -= come
        self._on_rows(sum(shard.rows for shard in come))
        return len(come)

    def answer_shards(self) -> int:
        """Answer those that are absent and that nobody else holds; how many."""
        before = len(self.absent)
        come = 0
        for shards in self._by_file:
            if not self.absent.isdisjoint(shards):
                come += self.look(shards)
                if not self.absent.isdisjoint(shards):
                    self._answer_file(shards)
                    come += self.look(shards)
        return before - len(self.absent) - come

    def _answer_file(self, shards: Sequence[Shard]) -> None:
        file = shards[0].file
        rows = rows_of(self._plan, self._source, file)
        for shard in shards:
            own = islice(rows, shard.rows)
            if shard in self.absent:
                with contextlib.suppress(Timeout), FileLock(self._output / f".{shard.name}.lock", timeout=0):
                    self._answer_shard(shard, file, own)
            for _ in own:  # what was not answered here lies between us and the next
                pass

    def _answer_shard(self, shard: Shard, file: int, rows: Iterator[TextRow | BadRow]) -> None:
        if not (self._output / shard.name).is_file():
            lines = answered_lines(self._plan, rows, self._answer, self._on_rows)
            path = input_path(self._plan, self._source, file)
            write_shard(shard, lines, self._output, lambda: require_unchanged(self._plan.files[file], path))
            self.absent.discard(shard)
        (self._output / f".{shard.name}.lock").unlink(missing_ok=True)  # who waits for it finds the shard


def answered_lines(
    plan: Plan, rows: Iterator[TextRow | BadRow], answer: Answer, on_rows: Callable[[int], None]
) -> Iterator[str]:
    """The lines of rows, in their order; a few rows are in memory at a time."""
    question = plan.question
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        good = [row for row in some if isinstance(row, TextRow)]
        outcomes = iter(answer([asked for row in good for asked in question.inputs(row)]) if good else ())
        for row in some:
            if isinstance(row, BadRow):
                yield bad_line(row)
            else:
                yield answered_line(row, list(islice(outcomes, len(question.pinned))), question.probabilities)
        on_rows(len(some))


def write_shard(shard: Shard, lines: Iterator[str], output: Path, confirm: Callable[[], None]) -> None:
    """Write a shard's file whole or not at all.

    Args:
        confirm: called when all lines are written, before the file gets its name; may raise to leave it.

    Raises:
        ConflictError: there are fewer rows than the plan says: the source has changed.
        OSError: it cannot be written.
    """
    target, part = output / shard.name, output / f".{shard.name}.part"
    try:
        written = 0
        with part.open("w", encoding="utf-8", newline="") as stream:
            for line in lines:
                stream.write(line)
                written += 1
            stream.flush()
            os.fsync(stream.fileno())
        confirm()
        if written != shard.rows:
            raise ConflictError(f"{shard.name} has {written:,} rows, the plan says {shard.rows:,}.", _ANEW)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _begun(source: Path, output: Path, question: BulkQuestion) -> Plan | None:
    """The plan of the run whose answers the folder has, if it is this one's; None where the folder is empty."""
    plan = read_plan(output)
    if plan is None:
        if any(path.name not in (_LOCK, _PLAN_PART) for path in output.iterdir()):
            raise ConflictError(f"{output} holds files that are not those of a run.", _ANEW)
        return None
    if not plan.question.same(question):
        raise ConflictError(f"{output} holds the answers of another run: it was asked something else.", _ANEW)
    paths = dict(input_paths(source))
    if list(paths) != [file.name for file in plan.files]:
        raise ConflictError(f"{output} holds the answers of another run: {source} has other files now.", _ANEW)
    for file in plan.files:
        require_unchanged(file, paths[file.name])
    return plan


def _write_plan(plan: Plan, output: Path) -> None:
    part = output / _PLAN_PART
    part.write_bytes(plan_bytes(plan))
    part.replace(output / PLAN)


def _require_apart(source: Path, output: Path) -> None:
    folder = source if source.is_dir() else source.parent
    inside = source.is_dir() and output.resolve().is_relative_to(folder.resolve())
    if inside or output.resolve() == source.resolve():
        raise InputError(f"{output} lies in {source}, which is read.", "--output a folder beside it")


@contextmanager
def _written_to(output: Path) -> Iterator[None]:
    """What the file system refuses, in our words."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        yield
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise NotAllowedError(
            f"{output} cannot be written: {error.strerror}.", "--output a folder that you can write to"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{output} cannot be written: {error.strerror or error}.", "free some space, then the same command goes on"
        ) from error
