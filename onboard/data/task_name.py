"""The name of a task: as given, or the stem of its file if it is valid."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from onboard.data import hub
from onboard.data.formats.source import stem_of
from onboard.domain.names import require_name
from onboard.errors import InputError


def check_task_name(name: str) -> str:
    """Return the name if it matches `[a-z0-9][a-z0-9_-]{0,63}`.

    Raises:
        InputError: the name is invalid; the remedy suggests a valid one.
    """
    try:
        return require_name(name)
    except InputError as error:
        raise InputError.like(error, f"{error.remedy} For example: --task {proposal(name)}", name=name) from error


def task_name_of(source: str | Path) -> str:
    """Return the default name of a task: the file's stem, or the last part of an `hf://` name.

    Raises:
        InputError: it is invalid; nothing is renamed silently, and the remedy suggests a name.
    """
    text = str(source)
    stem = hub.default_name(text) if text.startswith(hub.SCHEME) else stem_of(text)
    try:
        return require_name(stem)
    except InputError as error:
        raise InputError("file-name-without-letters", name=stem, stem=proposal(stem)) from error


def proposal(name: str) -> str:
    """Return a valid name that resembles this one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:64] or "my-task"
