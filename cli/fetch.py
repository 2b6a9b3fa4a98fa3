"""`onboard fetch`: the files of a version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit


def fetch(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Add the base: all that predictions elsewhere need.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Folder; default ./TASK-vN.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a version's embedding and card to a folder, verified by digest."""
    with connected() as service:
        version = service.version(task)
        name, number = version["task"], version["version"]
        written = service.fetch(f"{name}@v{number}", output or Path(f"{name}-v{number}"), bundle)
    files = [str(path) for path in written]
    emit({**version, "files": files}, as_json, lambda: "\n".join([f"{name}@v{number}", *files]))
