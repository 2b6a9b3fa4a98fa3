"""The files of `onboard predict`: texts in any format of a dataset; answers as JSONL, or as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from cli.output import say
from cli.standard_input import STANDARD_INPUT, spooled
from onboard.data.rows import require_few
from onboard.data.text_stream import BadRow, stream_texts
from onboard.data.texts import TextRow, read_texts
from onboard.domain.dataset import label_text
from onboard.domain.printable import printable_json
from onboard.errors import InputError, NotAllowedError, NotFoundError
from onboard.serving.bulk.asked import COLUMNS, renamed

LABEL_TOOLS: Final = ("label-studio", "argilla")
# What makes a spreadsheet run a cell as a formula (OWASP, CSV injection), the full-width forms included.
FORMULA_STARTS: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def read_inputs(path: Path, text_fields: tuple[str, ...], *, skip: bool = False) -> Sequence[TextRow | BadRow]:
    """The texts to predict, with the other columns of their rows; `-` is standard input, as JSONL.

    Args:
        skip: whether rows that cannot be answered are given as such; else they are an error.

    Raises:
        DatasetError: the file cannot be read, or some of its rows cannot; with `skip`, none of them can.
        InputError: more than two fields are named.
    """
    if len(text_fields) > 2:
        message = f"--text-field is given {len(text_fields)} times; a row has one text or two."
        raise InputError(message, "Give it once, or twice for pairs.", text_fields=list(text_fields))
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


def write_answers(
    answers: Sequence[Mapping[str, Any]], path: Path, given: Sequence[Mapping[str, object]] | None = None
) -> None:
    """Write answers, one a row: CSV where the name ends in .csv, else JSONL.

    Args:
        given: the columns of each row that was asked, which stand before its answer. One that is called like a part of
            the answer is called `given_…`.

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
        tool: label-studio or argilla: a JSON array that it imports; None is a table with an empty label each.

    Raises:
        InputError: no such tool.
        NotFoundError: it advises none.
        NotAllowedError: the file cannot be written.
    """
    require_label_tool(tool)
    advised = (job.get("label_next") or {}).get("rows", ())
    if not advised:
        raise NotFoundError(
            f"Job {job['job']} names no texts to label next.",
            f"Hand some in with it: onboard submit FILE --task {job['task']} --unlabelled FILE",
            job=job["job"],
        )
    texts = [{field: row[field] for field in ("text", "text_a", "text_b") if field in row} for row in advised]
    remedy = "--label-next another file"
    if tool is None:
        _write([{**text, "label": None} for text in texts], path, remedy)
    elif tool == "label-studio":
        tasks = [{"data": {**text, "onboard": _doubt(row)}} for text, row in zip(texts, advised, strict=True)]
        _write(tasks, path, remedy, _write_array)
    else:
        empty: dict[str, Any] = {"metadata": {}, "suggestions": {}, "responses": {}, "vectors": {}}
        records = [
            {"id": f"{job['job']}-{place}", "fields": text, **empty} for place, text in enumerate(texts, start=1)
        ]
        _write(records, path, remedy, _write_array)
    say(f"texts to label next: {path}")


def require_label_tool(tool: str | None) -> None:
    """Raise InputError where it is no tool that texts to label next are written for."""
    if tool is not None and tool not in LABEL_TOOLS:
        remedy = f"Use one of {', '.join(LABEL_TOOLS)}; without it the file is a table."
        raise InputError(f"{tool!r} is no choice of --label-tool.", remedy, label_tool=tool)


def _doubt(row: Mapping[str, Any]) -> str:
    """What the version would answer now, for whoever labels: `good 0.52, bad 0.48`, or `3.4 ± 0.8`."""
    if "value" in row:
        return f"{row['value']} ± {row['spread']}"
    return ", ".join(f"{label_text(answer['label'])} {answer['probability']:.2f}" for answer in row.get("answers", ()))


def _unwritable(path: Path, error: OSError, remedy: str = "--output another file") -> NotAllowedError:
    return NotAllowedError(f"{path} cannot be written: {error.strerror}.", remedy)


def _write_jsonl(rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """A row is a line to every reader, also to those that end one at a line separator of Unicode."""
    stream.writelines(printable_json(json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)


def _write_array(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    json.dump(list(rows), stream, ensure_ascii=False, indent=1)
    stream.write("\n")


def _write_csv(rows: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    """A column for each label's probability, where there are any."""
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
    """A number as it is; a text behind an apostrophe where a spreadsheet would run it."""
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
