"""Quotas of owners: how many jobs may be open and how many bytes stored, and how much of that is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from onboard.errors import InputError

MOST: Final = 2**53 - 1  # the largest whole number that every reader of JSON has exactly
NONE: Final = "none"  # lifts a limit
_MOST_DIGITS: Final = 16
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE: Final = re.compile(r"([0-9]{1,16})(?:\.([0-9]{1,3}))?\s?([kmgt]?)(i?)b?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of an owner; None is no limit, 0 allows nothing.

    Args:
        owner: name of its tokens, which share the quota.
    """

    owner: str
    max_jobs: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """An owner's quota and how much of it is used.

    Args:
        bytes: stored for the owner; None where bytes are not limited and were not counted.
    """

    owner: str
    queued: int = 0
    running: int = 0
    max_jobs: int | None = None
    bytes: int | None = None
    max_bytes: int | None = None

    @property
    def jobs(self) -> int:
        """Number of queued and running jobs."""
        return self.queued + self.running

    @property
    def jobs_left(self) -> int | None:
        """Number of further jobs; None without a limit."""
        return None if self.max_jobs is None else max(0, self.max_jobs - self.jobs)

    @property
    def bytes_left(self) -> int | None:
        """Number of further bytes; None without a limit."""
        return None if self.max_bytes is None else max(0, self.max_bytes - (self.bytes or 0))

    def remaining(self) -> dict[str, Any]:
        """Return the facts of a refusal: limits, use, and what is left."""
        return {
            "max_jobs": self.max_jobs, "jobs": self.jobs, "jobs_left": self.jobs_left,
            "max_bytes": self.max_bytes, "bytes": self.bytes, "bytes_left": self.bytes_left,
        }  # fmt: skip


def require_limits(limits: Mapping[str, int | None]) -> None:
    """Raise InputError if a limit is negative or too large for a JSON number."""
    for field, limit in limits.items():
        if limit is not None and limit < 0:
            raise InputError("quota-negative", field=field, value=limit)
        if limit is not None and limit > MOST:
            raise InputError("quota-too-large", field=field, value=limit, most=MOST)


def read_limit(text: str, field: str) -> int | None:
    """Parse a limit of an option: a number or a size; None for "none". Raises InputError."""
    if text == NONE:
        return None
    if field == "max_bytes":
        return read_size(text)
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > _MOST_DIGITS:
        raise InputError("job-limit-invalid", field=field, text=text[:40])
    limit = int(text)
    require_limits({field: limit})
    return limit


def read_size(text: str) -> int:
    """Parse a number of bytes: "500000", "20MB", "1.5GB" or "2GiB".

    Raises:
        InputError: it is not a size, or larger than 9 PB.
    """
    matched = _SIZE.fullmatch(text.strip())
    if matched is None or (matched[2] and not matched[3]) or (matched[4] and not matched[3]):
        raise InputError("size-invalid", field="max_bytes", text=text[:40])
    base, power = 1024 if matched[4] else 1000, _POWERS[matched[3].lower()]
    digits = matched[2] or ""
    size: int = int(matched[1] + digits) * pow(base, power) // pow(10, len(digits))
    if size > MOST:
        raise InputError("size-invalid", field="max_bytes", text=text[:40])
    return size
