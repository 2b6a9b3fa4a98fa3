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
        bool, typer.Option("--bundle", help="Include the base, for machines that do not have it.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Folder. Defaults to ./TASK-vN.")] = None,
    as_json: AsJson = False,
) -> None:
    """Download and verify all files of a version: embedding, readout, card, and a later hypernetwork."""
    with connected() as service:
        version = service.version_document(task)
        name, number = version["task"], version["version"]
        written = service.fetch(f"{name}@v{number}", output or Path(f"{name}-v{number}"), bundle)
    files = [str(path) for path in written]
    emit({**version, "files": files}, as_json, lambda: "\n".join([f"{name}@v{number}", *files]))
