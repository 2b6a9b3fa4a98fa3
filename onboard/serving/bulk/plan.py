"""The plan of a run: which files it reads, what they were when it began, and how their rows are cut into shards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from onboard.data.text_stream import BadRow, stream_texts
from onboard.data.texts import TextRow
from onboard.domain.task import texts_taken
from onboard.domain.untrusted_json import parse_json
from onboard.errors import ConflictError, DamagedError, InputError, NotFoundError
from onboard.serving.bulk.asked import BulkQuestion

PLAN: Final = "plan.json"
SHARD_ROWS: Final = 4_096
SHARD_CHARACTERS: Final = 8 << 20
_FORMAT: Final = 1
_START_AGAIN: Final = "Put the file back as it was, or start anew: --output another folder"
_PASSED_OVER: Final = (".", "_")  # what names of files begin with that are no data: markers, temporary files


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is read.

    Args:
        name: relative to the folder that was asked for; of a single file its own.
        size_bytes, changed_ns: what the file system said when the run was planned.
        rows: all of them, the bad ones too.
        bad_rows: those that hold no text that can be answered.
    """

    name: str
    size_bytes: int
    changed_ns: int
    rows: int = 0
    bad_rows: int = 0


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive rows of one file, which are answered and written together.

    Args:
        number: from 0, in the order of the output.
        file: place among the plan's files.
        first: how many rows of the file come before it.
        rows: how many it has.
    """

    number: int
    file: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """The file that its answers are in."""
        return f"part-{self.number:06d}.jsonl"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does, whoever does it and however often it is stopped.

    Args:
        pairs: whether the rows have two texts.
    """

    question: BulkQuestion
    pairs: bool
    files: tuple[InputFile, ...]
    shards: tuple[Shard, ...]

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(file.rows for file in self.files)

    @property
    def bad_rows(self) -> int:
        """Of all files."""
        return sum(file.bad_rows for file in self.files)

    def shards_by_file(self) -> list[list[Shard]]:
        """Those of each file that has rows, in their order."""
        return [list(shards) for _, shards in groupby(self.shards, key=lambda shard: shard.file)]

    def to_json(self) -> dict[str, Any]:
        """As it lies beside the answers."""
        files = [[file.name, file.size_bytes, file.changed_ns, file.rows, file.bad_rows] for file in self.files]
        shards = [[shard.file, shard.first, shard.rows] for shard in self.shards]
        question = self.question.to_json()
        return {"format": _FORMAT, "question": question, "pairs": self.pairs, "files": files, "shards": shards}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Plan:
        """Read what `to_json` wrote. Raises KeyError, TypeError, ValueError for anything else."""
        if document["format"] != _FORMAT:
            raise ValueError(f"plans of format {document['format']!r} are not known here")
        files = tuple(InputFile(*file) for file in document["files"])
        shards = tuple(Shard(number, *shard) for number, shard in enumerate(document["shards"]))
        return cls(BulkQuestion.from_json(document["question"]), bool(document["pairs"]), files, shards)


def read_plan(folder: Path) -> Plan | None:
    """The plan of the run whose answers are in a folder; None where there is none. Raises DamagedError."""
    path = folder / PLAN
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return Plan.from_json(parse_json(content))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedError(f"{path} is not the plan of a run: {error}.", "--output another folder") from error


def plan_bytes(plan: Plan) -> bytes:
    """The file of a plan."""
    return json.dumps(plan.to_json(), ensure_ascii=False).encode()


def input_paths(source: Path) -> list[tuple[str, Path]]:
    """The files of a folder, the folders in it included, by name; or the one file. Names as the plan has them.

    Raises:
        NotFoundError: there is nothing of that name.
        InputError: the folder holds no file.
    """
    if not source.exists():
        raise NotFoundError(f"There is no {source}.", "Check the path.")
    if not source.is_dir():
        return [(source.name, source)]
    paths = sorted(path for path in source.rglob("*") if path.is_file())
    named = [(path.relative_to(source).as_posix(), path) for path in paths]
    data = [(name, path) for name, path in named if not any(part.startswith(_PASSED_OVER) for part in name.split("/"))]
    if not data:
        raise InputError(f"{source} holds no files.", "Give a folder of JSONL, CSV, TSV or Parquet files.")
    return data


def looked_at(name: str, path: Path) -> InputFile:
    """A file as the file system has it now. Raises ConflictError: it is gone."""
    try:
        facts = path.stat()
    except OSError as error:
        raise ConflictError(f"{path} is gone: {error.strerror}.", _START_AGAIN, file=name) from error
    return InputFile(name, facts.st_size, facts.st_mtime_ns)


def require_unchanged(file: InputFile, path: Path) -> None:
    """Raise ConflictError unless a file is what it was when the run was planned."""
    now = looked_at(file.name, path)
    if (now.size_bytes, now.changed_ns) != (file.size_bytes, file.changed_ns):
        raise ConflictError(f"{path} has changed since the run began.", _START_AGAIN, file=file.name)


def make_plan(question: BulkQuestion, source: Path) -> Plan:
    """Read all files once, without keeping them, and cut their rows into shards.

    Raises:
        NotFoundError, InputError: no files; some have one text a row and others two.
        DatasetError: a file cannot be read to its end.
        ConflictError: one changed meanwhile.
    """
    files: list[InputFile] = []
    shards: list[Shard] = []
    widths: dict[int, str] = {}
    for name, path in input_paths(source):
        before, counting = looked_at(name, path), _Counting(len(files), len(shards))
        for row in stream_texts(path, question.text_fields, shown=str(path)):
            counting.add(row)
            if isinstance(row, TextRow):
                widths.setdefault(len(row.texts), name)
        require_unchanged(before, path)
        shards += counting.finished()
        files.append(InputFile(name, before.size_bytes, before.changed_ns, counting.rows, counting.bad_rows))
        if len(widths) > 1:
            raise InputError(
                f"{widths[1]} has one text a row, {widths[2]} has two.", "Ask for them in two runs.",
                files=[widths[1], widths[2]],
            )  # fmt: skip
    return Plan(question, 2 in widths, tuple(files), tuple(shards))


class _Counting:
    """Cuts the rows of one file where a shard has enough of them, or of their letters."""

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
        """The shards, once all rows are counted."""
        if self.rows > self._first:
            self._cut()
        return self._shards

    def _cut(self) -> None:
        shard = Shard(self._number + len(self._shards), self._file, self._first, self.rows - self._first)
        self._shards.append(shard)
        self._first, self._characters = self.rows, 0


def require_form(plan: Plan, takes: Mapping[str, bool | None]) -> None:
    """Raise InputError where a version takes two texts and the rows have one, or the reverse.

    Args:
        takes: whether each version takes two; None where nobody knows.
    """
    for reference, pairs in takes.items():
        if pairs is not None and pairs != plan.pairs:
            has = "two texts a row" if plan.pairs else "one text a row"
            fields = "--text-field FIELD --text-field FIELD" if pairs else "--text-field FIELD"
            raise InputError(
                f"{reference} takes {texts_taken(pairs)}, and the input has {has}.", f"Say which they are: {fields}",
                task=reference, pairs=pairs,
            )  # fmt: skip


def input_path(plan: Plan, source: Path, file: int) -> Path:
    """Where one of the plan's files lies."""
    return source / plan.files[file].name if source.is_dir() else source


def rows_of(plan: Plan, source: Path, file: int) -> Iterator[TextRow | BadRow]:
    """The rows of one of the plan's files, in order. Raises ConflictError: the file has changed; DatasetError."""
    path = input_path(plan, source, file)
    require_unchanged(plan.files[file], path)
    return stream_texts(path, plan.question.text_fields, shown=str(path))
