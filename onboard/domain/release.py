"""The version of this code: its release, and a digest of the package's source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from onboard import __version__


@cache
def code_version() -> str:
    """Return `0.1.0+1a2b3c4d5e6f`: the version and twelve hex digits of sha256 over the package's Python files."""
    root = Path(__file__).parent.parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{total.hexdigest()[:12]}"


def release_number(version: str = __version__) -> int:
    """Return `1.2.3` as 1002003, so that releases can be compared in SQL; parts after the third are ignored."""
    major, minor, patch = (int(part) for part in re.findall(r"\d+", f"{version}.0.0")[:3])
    return major * 1_000_000 + minor * 1_000 + patch


def release_of(facts: Mapping[str, Any]) -> int:
    """Return the release of a worker from its facts; a worker that is just starting will have ours."""
    return release_number(facts.get("onboard") or __version__)


def release_name(number: int) -> str:
    """Return 1002003 as `1.2.3`."""
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"
