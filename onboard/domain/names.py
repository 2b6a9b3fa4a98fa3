"""The grammar of names and references. Names are validated here and never become paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from onboard.errors import InputError

LATEST: Final = "latest"

MOST_LETTERS: Final = 64  # of a name

_SHOWN_LETTERS: Final = 80  # of an invalid name, in the message

NAME_PATTERN: Final = rf"^[a-z0-9][a-z0-9_-]{{0,{MOST_LETTERS - 1}}}$"

_NAME = re.compile(NAME_PATTERN)
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,2})?")
_VERSION = re.compile(r"v([1-9][0-9]{0,8})")


def require_name(name: str, what: str = "task name") -> str:
    """Return `name` if it matches `[a-z0-9][a-z0-9_-]{0,63}`, else raise InputError. Also used for queues."""
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= _SHOWN_LETTERS else f"{name[:_SHOWN_LETTERS]}…"
        raise InputError("name-invalid", name=shown, kind=what, most_letters=MOST_LETTERS)
    return name


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" with the most similar known name, or "" if none is similar."""
    alike = get_close_matches(name, known, 1)
    return f" Did you mean {alike[0]}?" if alike else ""


def require_alias(alias: str) -> str:
    """Return `alias` if it is a valid name and not a version number, else raise InputError."""
    require_name(alias, "alias name")
    if _VERSION.fullmatch(alias):
        raise InputError("alias-is-version-number", alias=alias)
    return alias


def require_device_name(device: str) -> str:
    """Return `device` if it is auto, cpu, cuda or cuda:N, else raise InputError. Does not check that it exists."""
    if not _DEVICE.fullmatch(device):
        raise InputError("unknown-device", device=device)
    return device


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a version: `task`, `task@latest`, `task@v3` or `task@production`.

    Exactly one of `version` and `alias` is set.
    """

    task: str
    alias: str | None = LATEST
    version: int | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Parse a reference; without `@` it means `@latest`. Raises InputError if it is invalid."""
        task, at, ref = text.partition("@")
        require_name(task)
        if not at:
            return cls(task)
        if number := _VERSION.fullmatch(ref):
            return cls(task, alias=None, version=int(number[1]))
        return cls(task, alias=require_alias(ref))

    @classmethod
    def parse_pair(cls, earlier: str, later: str) -> tuple[Reference, Reference]:
        """Parse two references of one task. Raises InputError if they are invalid or of two tasks."""
        a, b = cls.parse(earlier), cls.parse(later)
        if a.task != b.task:
            raise InputError("versions-of-two-tasks", a=a, b=b, task=a.task)
        return a, b

    @property
    def ref(self) -> str:
        """The part after the `@`: `latest`, `v3`, `production`."""
        return str(self.alias) if self.version is None else f"v{self.version}"

    def __str__(self) -> str:
        return f"{self.task}@{self.ref}"
