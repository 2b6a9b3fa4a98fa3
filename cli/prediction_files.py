"""The files of `onboard predict`: texts in any format of a dataset; answers as JSONL, or as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from onboard.data.texts import read_texts
from onboard.errors import InputError, NotAllowedError

_COLUMNS: Final = ("label", "probability", "task", "version")
# What makes a spreadsheet run a cell as a formula (OWASP, CSV injection), the full-width forms included.
FORMULA_STARTS: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def read_inputs(path: Path, text_fields: tuple[str, ...]) -> list[dict[str, str]]:
    """The texts to predict; `-` is standard input, as JSONL.

    Raises:
        DatasetError: the file cannot be read, or some of its rows cannot.
        InputError: more than two fields are named.
    """
    if len(text_fields) > 2:
        message = f"--text-field is given {len(text_fields)} times; a row has one text or two."
        raise InputError(message, "Give it once, or twice for pairs.", text_fields=list(text_fields))
    if str(path) != "-":
        return read_texts(path, text_fields)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stdin.jsonl"  # remedies name it
        with copy.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        return read_texts(copy, text_fields, shown="standard input")


def require_output(path: Path, source: Path | None) -> None:
    """Before anything is computed, as answers that cannot be written would be lost.

    Raises:
        InputError: it is the file with the texts.
        NotAllowedError: the file cannot be written.
    """
    new = not path.exists()
    if source is not None and not new and source.exists() and path.samefile(source):
        raise InputError(f"{path} holds the texts, the answers would replace them.", "--output another file")
    if not new and not path.is_file():
        return  # a pipe, a terminal
    try:
        with path.open("ab"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write_answers(answers: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write answers, one a row: CSV where the name ends in .csv, else JSONL.

    Raises:
        NotAllowedError: the file cannot be written.
    """
    write = _write_csv if path.suffix.lower() == ".csv" else _write_jsonl
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            write(answers, stream)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> NotAllowedError:
    return NotAllowedError(f"{path} cannot be written: {error.strerror}.", "--output another file")


def _write_jsonl(answers: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    stream.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in answers)


def _write_csv(answers: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    # every text is quoted: where ; separates (that depends on the country), none may fall apart into a formula
    writer = csv.writer(stream, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(_COLUMNS)
    writer.writerows([_cell(answer[column]) for column in _COLUMNS] for answer in answers)


def _cell(value: Any) -> str | int | float:
    """A number as it is; a text behind an apostrophe where a spreadsheet would run it."""
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
