"""`onboard fetch`: the files of a version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.output import AsJson, emit
from cli.services import opened


def fetch(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Add the base: all that predictions elsewhere need.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Folder; default ./TASK-vN.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a version's embedding and card to a folder, verified by digest."""
    from onboard.fetch import fetch as write
    from onboard.registry.versions import VersionRepository

    with opened() as services:
        with services.database.read() as session:
            version = VersionRepository(session).resolve(task)
        folder = output or Path(version.reference.replace("@", "-"))
        fetched = write(services, version.reference, folder, bundle)
    files = [str(path) for path in fetched.files]
    emit({**fetched.version.to_json(), "files": files}, as_json, lambda: "\n".join([fetched.version.reference, *files]))
