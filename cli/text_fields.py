"""Which columns of a file are its texts where no option says it: those of the task's training, if they are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.standard_input import STANDARD_INPUT
from onboard.errors import NotFoundError, OnboardError

if TYPE_CHECKING:
    from onboard.client.protocol import Service
    from onboard.domain.names import Reference

_MOST_CARRIED = 20  # versions that were carried from one another, back to the one that a job published


def fields_of(
    service: Service, references: Sequence[Reference], source: str, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The columns to read: the given ones, else those of the tasks' training, else the usual names (empty).

    Args:
        references: the versions that answer; if they were trained on different columns, none is returned.
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
    """The columns of the texts that a version was trained with; none where nobody knows any more."""
    version = service.version_document(reference)
    for _ in range(_MOST_CARRIED):
        if version["kind"] != "carried":
            break
        version = service.version_document(version["parent"])
    if not version["job"]:
        return ()
    try:
        fields = service.job(version["job"]).document.get("fields") or {}
    except NotFoundError:  # jobs are given up in time
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
    except (OnboardError, UnreadableError, OSError, ValueError, EOFError):  # the reader reports the error
        return ()


def _usual(columns: Sequence[str]) -> tuple[str, ...]:
    from onboard.data.fields import resolve_texts
    from onboard.data.formats import UnreadableError

    try:
        return resolve_texts(tuple(columns), (), ())
    except UnreadableError:
        return ()
