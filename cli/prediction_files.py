"""The files of `onboard predict`: texts in any format of a dataset; answers as JSONL, or as CSV for spreadsheets."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from cli.label_tools import WRITERS, require_label_tool, texts_of
from cli.output import say
from cli.standard_input import STANDARD_INPUT, spooled
from onboard.data.rows import require_few
from onboard.data.text_stream import BadRow, stream_texts
from onboard.data.texts import TextRow, read_texts
from onboard.domain.dataset import label_text
from onboard.domain.printable import printable_json
from onboard.errors import InputError, NotAllowedError, NotFoundError
from onboard.serving.bulk.asked import COLUMNS, renamed

_FORMULA_SIGNS: Final = frozenset(
    "=+-@\u2212"
)  # once they are in their plain form: a spreadsheet may take others for it
_HALVES: Final = re.compile("[\ud800-\udfff]")  # of surrogate pairs: no file of text holds them
_CONTROLS: Final = ("Cc", "Cf", "Zl", "Zp")  # NUL, tab, line breaks, the byte order mark: no text begins with them


def read_inputs(path: Path, text_fields: tuple[str, ...], *, skip: bool = False) -> Sequence[TextRow | BadRow]:
    """Read the texts to predict, with the other columns of their rows. `-` is standard input, as JSONL.

    Args:
        skip: whether to return rows that cannot be predicted as `BadRow`; otherwise they are an error.

    Raises:
        DatasetError: the file cannot be read, or some of its rows cannot; with `skip`, no row can.
        InputError: more than two fields are named.
    """
    if len(text_fields) > 2:
        raise InputError("text-field-count", text_fields=list(text_fields), count=len(text_fields))
    if str(path) != STANDARD_INPUT:
        return _read(path, text_fields, None, skip)
    with spooled() as copy:
        return _read(copy, text_fields, "standard input", skip)


def _read(path: Path, text_fields: tuple[str, ...], shown: str | None, skip: bool) -> Sequence[TextRow | BadRow]:
    if skip:
        rows: list[TextRow | BadRow] = []
        for row in stream_texts(path, text_fields, shown=shown):
            rows.append(row)
            require_few(len(rows))
        if any(isinstance(row, TextRow) for row in rows):
            return rows
    return read_texts(path, text_fields, shown=shown)


def require_output(path: Path, source: Path | None) -> None:
    """Check that the answers can be written, before anything is computed.

    Raises:
        InputError: it is the file with the texts.
        NotAllowedError: the file cannot be written.
    """
    new = not path.exists()
    if source is not None and not new and source.exists() and path.samefile(source):
        raise InputError("output-is-input", path=path)
    if not new and not path.is_file():
        return  # a pipe or a terminal
    try:
        with path.open("ab"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write_answers(
    answers: Sequence[Mapping[str, Any]], path: Path, given: Sequence[Mapping[str, object]] | None = None
) -> None:
    """Write answers, one per row: CSV if the name ends in .csv, otherwise JSONL.

    Args:
        given: the columns of each input row, which are written before its answer. A column with the name of a part of
            the answer is written as `given_…`.

    Raises:
        NotAllowedError: the file cannot be written.
    """
    parts = {part for answer in answers for part in answer}
    columns = [renamed(row, parts) for row in given or [{}] * len(answers)]
    rows = [{**row, **answer} for row, answer in zip(columns, answers, strict=True)]
    _write(rows, path, "--output another file")


def _write(
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    remedy: str,
    write: Callable[[Sequence[Mapping[str, Any]], TextIO], None] | None = None,
) -> None:
    write = write or (_write_csv if path.suffix.lower() == ".csv" else _write_jsonl)
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            write(rows, stream)
    except OSError as error:
        raise _unwritable(path, error, remedy) from error


def write_label_next(job: Mapping[str, Any], path: Path, tool: str | None = None) -> None:
    """Write the texts that a job advises to label next, the most uncertain first.

    Args:
        tool: "label-studio" or "argilla" for a JSON array; "doccano" for JSONL; None for a table with empty labels.
            Files for a tool include the version's answers as suggestions.

    Raises:
        InputError: no such tool, or it cannot label such rows.
        NotFoundError: the job advises no texts.
        NotAllowedError: the file cannot be written.
    """
    require_label_tool(tool)
    advised = (job.get("label_next") or {}).get("rows", ())
    if not advised:
        raise NotFoundError("no-texts-to-label", job=job["job"], task=job["task"])
    remedy = "--label-next another file"
    if tool is None:
        _write([{**texts_of(row), "label": None} for row in advised], path, remedy)
    else:
        records = [WRITERS[tool](job, row, place) for place, row in enumerate(advised, start=1)]
        _write(records, path, remedy, _write_jsonl if tool == "doccano" else _write_array)
    say(f"texts to label next: {path}")


def write_suggestions(job: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], path: Path, tool: str) -> None:
    """Write texts with their answers as suggestions for a labeling tool.

    Args:
        job: `task` and `version` of the answers.
        rows: as of `cli.label_tools.answered_row`.

    Raises:
        InputError: the tool cannot label such rows.
        NotAllowedError: the file cannot be written.
    """
    records = [WRITERS[tool](job, row, place) for place, row in enumerate(rows, start=1)]
    _write(records, path, "--output another file", _write_jsonl if tool == "doccano" else _write_array)


def _unwritable(path: Path, error: OSError, remedy: str = "--output another file") -> NotAllowedError:
    return NotAllowedError("answers-not-writable", path=path, reason=error.strerror, remedy=remedy)


def _write_jsonl(rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Write a JSON line per row, also for readers that end a line at Unicode line separators."""
    stream.writelines(printable_json(json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)


def _write_array(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    json.dump(list(rows), stream, ensure_ascii=False, indent=1)
    stream.write("\n")


def _write_csv(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    """Write CSV with a column for each label's probability, if there are any."""
    spread = [_spread(row) for row in rows]
    columns = list(dict.fromkeys(column for row in spread for column in row)) or list(COLUMNS)
    # every text is quoted: where ; separates (that depends on the country), none may fall apart into a formula
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(row.get(column)) for column in columns] for row in spread)


def _spread(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = {name: value for name, value in row.items() if name != "probabilities"}
    shares = {
        f"probability of {label_text(share['label'])}": share["probability"] for share in row.get("probabilities", ())
    }
    return {**cells, **shares}


def _cell(value: Any) -> str | int | float:
    """Return a cell: numbers unchanged, and texts after an apostrophe if a spreadsheet would evaluate them."""
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return value
    text = _HALVES.sub("\ufffd", str(value))
    return f"'{text}" if may_run(text) else text


def may_run(text: str) -> bool:
    """Whether a spreadsheet may evaluate a text as a formula (OWASP, CSV injection).

    Spaces, control characters and invisible characters before `=`, `+`, `-` or `@` are skipped, as some spreadsheets
    do;
    small, raised and full-width forms of these count. So does any text that begins with a control character.
    """
    if not text:
        return False
    start = next((mark for mark in text if not mark.isspace() and unicodedata.category(mark) not in _CONTROLS), "")
    is_sign = unicodedata.normalize("NFKC", start)[:1] in _FORMULA_SIGNS
    return is_sign or unicodedata.category(text[0]) in _CONTROLS
