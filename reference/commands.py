"""The page of all commands with their arguments and options, generated from the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from cli.main import app
from reference.cells import cell


def page() -> str:
    """Return the page, in the order of `onboard --help`."""
    command = typer.main.get_command(app)
    head = [
        "# Commands",
        "",
        "Generated from `--help`. With `--json` a command prints one document. Exit codes: 0 success, "
        "1 the job failed, 2 invalid input, 3 not found, 4 conflict, 5 a service is unavailable, 6 not allowed.",
        "",
    ]
    return "\n".join([*head, *_sections(command, ("onboard",))])


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    children = getattr(command, "commands", None)
    if children is None:
        yield from _command(command, path)
        return
    for name, child in children.items():
        yield from _sections(child, (*path, name))


def _command(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    context = command.make_context(" ".join(path), [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {' '.join(path)}\n"
    yield f"    {' '.join(path)} {usage}\n"
    yield f"{_plain(command.help or '')}\n"
    rows = [_row(parameter, context) for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [row for row in rows if row]
    if rows:
        yield "| argument or option | meaning |\n|---|---|"
        yield "\n".join(rows) + "\n"


def _row(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)
    if record is None:  # an argument without a help text
        return ""
    name, meaning = record
    return f"| `{name.replace('|', '/')}` | {cell(meaning)} |"


def _plain(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
