"""Read the texts of a file for predictions, like a dataset but without labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import getsizeof
from typing import Final

from onboard.data.fields import require_one_column_each, resolve_texts
from onboard.data.formats import FileProblems, Reader, UnreadableError, open_reader
from onboard.data.formats.budget import too_large
from onboard.data.limits import MAX_TEXT_MEMORY_BYTES
from onboard.data.problems import Problems
from onboard.data.rows import checked_texts, require_few, require_plain, telling

OWN_NAMES: Final = {1: ("text",), 2: ("text_a", "text_b")}


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row: its texts as `{"text"}` or `{"text_a", "text_b"}`, and all its columns as given."""

    texts: dict[str, str]
    given: dict[str, object]


def read_texts(path: Path, text_fields: tuple[str, ...] = (), *, shown: str | None = None) -> list[TextRow]:
    """Return the rows of a file, in order.

    Args:
        text_fields: columns of the text or of the two texts; empty means the usual names.
        shown: the file's name in errors, if the path is meaningless to readers.

    Raises:
        DatasetError: with all problems of the file and its rows, as for a dataset.
    """
    problems = Problems()
    telling_to = FileProblems(problems, shown or str(path))
    rows: list[TextRow] = []
    with telling(path, telling_to):
        rows += _rows(path, text_fields, telling_to, whole=True)
    problems.raise_if_any()
    return rows


def telling_texts(path: Path, text_fields: tuple[str, ...], problems: FileProblems) -> list[dict[str, str]]:
    """Return the texts alone; problems go to `problems`, nothing is raised."""
    with telling(path, problems):
        return [row.texts for row in _rows(path, text_fields, problems, whole=False)]
    return []


def _rows(path: Path, text_fields: tuple[str, ...], problems: FileProblems, *, whole: bool) -> Iterator[TextRow]:
    reader = open_reader(path, problems)
    columns, fields = text_columns(reader, text_fields)
    names = OWN_NAMES.get(len(fields), ())
    seen = taken_bytes = 0
    for seen, row in enumerate(reader.rows(columns if whole else fields), start=1):
        require_few(seen)
        texts = [text for text in checked_texts(row, fields, problems) if isinstance(text, str)]
        taken_bytes += sum(map(getsizeof, texts))
        if taken_bytes > MAX_TEXT_MEMORY_BYTES:
            raise too_large(row.number)
        if len(texts) == len(names):
            yield TextRow(dict(zip(names, texts, strict=True)), dict(row.values) if whole else {})
    if not problems.any and not (seen and fields):
        raise UnreadableError("empty_file", "has no rows", 'Each row needs "text", or "text_a" and "text_b".')


def text_columns(reader: Reader, asked: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all columns of a file, and those of the text or the pair; none if it has no columns.

    Raises:
        UnreadableError: see `onboard.data.fields.resolve_texts`; or a text is an image, a list or an object.
    """
    columns = reader.columns()
    questions = reader.tool.questions if reader.tool else ()
    fields = resolve_texts(columns, asked, questions) if columns else ()
    require_one_column_each(fields, reader.doubled())
    require_plain(reader, fields)
    return columns, fields
