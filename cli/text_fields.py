"""The default text columns of a file: those that the task was trained with, if the file has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.standard_input import STANDARD_INPUT
from onboard.errors import NotFoundError, OnboardError

if TYPE_CHECKING:
    from onboard.client.protocol import Service
    from onboard.domain.names import Reference

_MOST_CARRIED = 20  # maximum carried versions between a version and the one that a job published


def fields_of(
    service: Service, references: Sequence[Reference], source: str, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns to read: the given ones, otherwise those of the tasks' training, otherwise none, for the usual names.

    Args:
        references: the versions that answer; if they were trained with different columns, the usual names are used.
        source: the file, folder, pattern or URL that is read.
    """
    if given or source == STANDARD_INPUT:
        return given
    columns = _columns(source)
    if not columns:
        return given
    trained = {trained_fields(service, str(reference)) for reference in references}
    fields = trained.pop() if len(trained) == 1 else ()
    return fields if set(fields) <= set(columns) and fields != _usual(columns) else given


def trained_fields(service: Service, reference: str) -> tuple[str, ...]:
    """The text columns that a version was trained with; empty if they are unknown."""
    version = service.version_document(reference)
    for _ in range(_MOST_CARRIED):
        if version["kind"] != "carried":
            break
        version = service.version_document(version["parent"])
    if not version["job"]:
        return ()
    try:
        fields = service.job(version["job"]).document.get("fields") or {}
    except NotFoundError:  # jobs are deleted after a while
        return ()
    return tuple(fields.get("text", ()))


def _columns(source: str) -> tuple[str, ...]:
    """The columns of the first file; empty for remote files, or if they cannot be read."""
    from onboard.data.formats import FileProblems, UnreadableError, open_reader
    from onboard.data.problems import Problems
    from onboard.serving.bulk.inputs import inputs_of
    from onboard.storage.objects import is_url

    if is_url(source):
        return ()
    try:
        inputs = inputs_of(source)
        path = Path(inputs.path(inputs.files()[0].name))
        return open_reader(path, FileProblems(Problems(), str(path))).columns()
    except (OnboardError, UnreadableError, OSError, ValueError, EOFError):  # reported later, when the file is read
        return ()


def _usual(columns: Sequence[str]) -> tuple[str, ...]:
    from onboard.data.fields import resolve_texts
    from onboard.data.formats import UnreadableError

    try:
        return resolve_texts(tuple(columns), (), ())
    except UnreadableError:
        return ()
