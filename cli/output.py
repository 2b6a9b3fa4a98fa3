"""How commands speak: tables for people, one JSON document with --json, errors once and with their remedy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.streams import say_no_more
from onboard.domain.printable import one_line, printable, printable_json
from onboard.errors import NotAllowedError, OnboardError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.columns import Cell, Columns
    from onboard.contract.document import Document as Contract

Document = dict[str, Any]  # what `--json` prints
_PROBLEMS_SHOWN = 20
AsJson = Annotated[bool, typer.Option("--json", help="Print only a JSON document to standard output.")]


def emit(document: dict[str, Any] | Contract, as_json: bool, render: Callable[[], RenderableType]) -> None:
    """Print the document with --json, else what `render` makes for people."""
    if as_json:
        write_json(document if isinstance(document, dict) else document.document, indent=2)
        return
    from cli.console import CleanConsole

    CleanConsole(soft_wrap=not sys.stdout.isatty()).print(render())


def write_json(document: dict[str, Any], indent: int | None = None) -> None:
    """A document on standard output; on one line unless it is indented. It steers no terminal."""
    print_line(printable_json(json.dumps(document, ensure_ascii=False, indent=indent, allow_nan=False)))


def print_line(text: str) -> None:
    """A line on standard output, without what could steer a terminal."""
    sys.stdout.write(printable(text.expandtabs()) + "\n")
    sys.stdout.flush()  # `onboard serve` goes on for days after its document


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], folded: Sequence[str] = ()) -> Columns:
    """A table for people, see `cli.columns.Columns`."""
    from cli.columns import Columns

    columns = Columns(*heads, folded=folded)
    for row in rows:
        columns.add(*row)
    return columns


def write_file(path: Path, content: bytes, what: str, remedy: str) -> None:
    """Write a requested file, and print its path. Raises NotAllowedError."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise NotAllowedError(
            "file-not-writable", part=what, path=path, reason=error.strerror, remedy=remedy
        ) from error
    say(f"{what}: {path}")


def say_warnings(document: Document) -> None:
    """The warnings of a document about a queued job."""
    for finding in document.get("warnings", ()):
        say(f"warning: {finding['message']} {finding['remedy']}")
    if document.get("warning"):
        say(f"warning: {document['warning']}")


def say(message: str) -> None:
    """A line of progress or advice, on standard error, without what could steer a terminal."""
    try:
        sys.stderr.write(printable(message.expandtabs()) + "\n")
        sys.stderr.flush()
    except OSError:  # nobody reads it, or its disk is full: no reason to leave the work undone
        say_no_more()


def report_error(error: OnboardError, as_json: bool) -> int:
    """Print an error with its remedy; returns the exit code."""
    if as_json:
        document = json.dumps({"error": error.to_json()}, ensure_ascii=False, indent=2, default=str)
        print_line(printable_json(document))
    problems = error.data.get("problems", [])
    if len(problems) > 1:
        count = error.data.get("problem_count", len(problems))
        say(f"error: the data has {count} problems; nothing was done.")
        for problem in problems[:_PROBLEMS_SHOWN]:
            say(f"  {_problem_line(problem)}")
        if count > _PROBLEMS_SHOWN:
            say(f"  and {count - _PROBLEMS_SHOWN} more")
        return error.exit_code
    say(f"error: {one_line(error.message)}")
    if error.remedy:
        say(f"  → {one_line(error.remedy)}")
    return error.exit_code


def _problem_line(problem: dict[str, Any]) -> str:
    place = ", ".join(f"{key} {problem[key]}" for key in ("file", "row", "field") if problem.get(key) is not None)
    remedy = f" → {problem['remedy']}" if problem.get("remedy") else ""
    said = f"{problem['message']}{remedy}"
    return one_line(f"{place}: {said}" if place else said)
