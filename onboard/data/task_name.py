"""The name of a task: given, or the stem of its file when that fits the grammar."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from onboard.data import hub
from onboard.data.formats.source import stem_of
from onboard.domain.names import require_name
from onboard.errors import InputError


def check_task_name(name: str) -> str:
    """Return the name when it follows `[a-z0-9][a-z0-9_-]{0,63}`.

    Raises:
        InputError: it does not; the remedy proposes a name that does.
    """
    try:
        return require_name(name)
    except InputError as error:
        raise InputError.like(error, f"{error.remedy} For example: --task {proposal(name)}", name=name) from error


def task_name_of(source: str | Path) -> str:
    """The task's name when none is given: the file's stem, or the last part of an `hf://` name.

    Raises:
        InputError: it does not follow the grammar; nothing is renamed in silence, the remedy proposes a name.
    """
    text = str(source)
    stem = hub.default_name(text) if text.startswith(hub.SCHEME) else stem_of(text)
    try:
        return require_name(stem)
    except InputError as error:
        raise InputError("file-name-without-letters", name=stem, stem=proposal(stem)) from error


def proposal(name: str) -> str:
    """A name that follows the grammar and resembles this one."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:64] or "my-task"
