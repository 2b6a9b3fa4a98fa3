"""`onboard predict`: answers of a task's version."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit, say
from cli.services import opened
from onboard.errors import InputError, NotAllowedError

if TYPE_CHECKING:
    from rich.table import Table


def predict(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    text: Annotated[str | None, typer.Option(help="A text.")] = None,
    text_a: Annotated[str | None, typer.Option(help="The first text of a pair.")] = None,
    text_b: Annotated[str | None, typer.Option(help="The second text of a pair.")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="JSONL with text, or text_a and text_b, a row.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the answers as JSONL.")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of texts."""
    from onboard.domain.names import Reference
    from onboard.serving.requests import parse_requests

    reference = Reference.parse(task)
    rows = _rows(text, text_a, text_b, input_file)
    asked = str(reference).partition("@")[2]
    requests = parse_requests([{**row, "task": reference.task, "ref": asked} for row in rows])
    with opened() as services:
        from onboard.registry.versions import VersionRepository
        from onboard.serving.predictor import Predictor

        with services.database.read() as session:
            VersionRepository(session).resolve(reference)  # an unknown one is told before a model is loaded
        answers = Predictor(services).answer(requests)
    documents = [answer.to_json() for answer in answers]
    if any(answer.weak for answer in answers):
        say(f"warning: {task} is weak, see: onboard versions {reference.task}")
    if output is not None:
        _write(documents, output)
    emit({"predictions": documents}, as_json, lambda: _table(rows, documents))


def _rows(text: str | None, text_a: str | None, text_b: str | None, path: Path | None) -> list[dict[str, Any]]:
    given = [text is not None, text_a is not None or text_b is not None, path is not None]
    if sum(given) != 1:
        raise InputError("Give one of --text, --text-a with --text-b, or --input.", "onboard predict --help")
    if path is not None:
        return _read(path)
    return [{"text": text}] if text is not None else [{"text_a": text_a, "text_b": text_b}]


def _read(path: Path) -> list[dict[str, Any]]:
    rows = []
    try:
        content = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}).", f"iconv -t UTF-8 {path}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", "--input another file", file=str(path)) from error
    for number, line in enumerate(content.split("\n"), 1):  # JSON strings may hold what splitlines splits at
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"{path}, row {number}: no JSON ({error}).", "one JSON object a line", row=number
            ) from error
        if not isinstance(row, dict):
            raise InputError(f"{path}, row {number}: no JSON object.", '{"text": "…"} a line', row=number)
        rows.append({key: value for key, value in row.items() if key in ("text", "text_a", "text_b")})
    if not rows:
        raise InputError(f"{path} has no rows.", '{"text": "…"} a line', file=str(path))
    return rows


def _write(documents: list[dict[str, Any]], output: Path) -> None:
    try:
        output.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents), encoding="utf-8")
    except OSError as error:
        raise NotAllowedError(f"{output} cannot be written: {error.strerror}.", "--output another file") from error


def _table(rows: list[dict[str, Any]], documents: list[dict[str, Any]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "probability", "version", "text")
    for row, each in zip(rows, documents, strict=True):
        shown = row.get("text") or f"{row.get('text_a')} | {row.get('text_b')}"
        label = f"{each['label']:.3f}" if isinstance(each["label"], float) else str(each["label"])
        table.add_row(Text(label), f"{each['probability']:.3f}", f"{each['task']}@v{each['version']}", Text(shown[:80]))
    return table
