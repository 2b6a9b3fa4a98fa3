"""`onboard export`: export a version for use without Onboard."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.output import AsJson, emit
from cli.services import local_only, opened


class Format(StrEnum):
    """Format of the exported files."""

    ADAPTERS = "adapters"
    ONNX = "onnx"


@local_only("export")
def export(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    format_: Annotated[
        Format, typer.Option("--format", help="adapters: weights for any T5 implementation. onnx: a complete model.")
    ],
    output: Annotated[Path | None, typer.Option(help="Folder. Defaults to ./TASK-vN-FORMAT.")] = None,
    as_json: AsJson = False,
) -> None:
    """Export a version for use without Onboard.

    As adapters: the weights that the hypernetwork generates. As ONNX: one model including the T5.
    """
    from onboard.versions.describe import resolve

    with opened() as services:
        (version,) = resolve(services.database, task)  # errors are reported before a model is loaded
        from onboard.versions.export.adapters import export_adapters
        from onboard.versions.export.onnx import export_onnx

        folder = output or Path(f"{version.task}-v{version.version}-{format_}")
        export_as = export_onnx if format_ is Format.ONNX else export_adapters
        written = export_as(services, version.reference, folder)
    files = [str(path) for path in written.files]
    document = {"task": version.task, "version": version.version, "format": str(format_), "files": files}
    emit(document, as_json, lambda: "\n".join([version.reference, *files]))
