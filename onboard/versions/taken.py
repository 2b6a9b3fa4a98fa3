"""Check which files of a repository may be pulled, and that they overwrite nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from onboard.contract.version_files import BASE, EMBEDDING, HYPERNETWORK, READOUT, WEIGHTS
from onboard.errors import ConflictError, DamagedError, InputError

OWN_FILES: Final = (EMBEDDING, WEIGHTS, READOUT, HYPERNETWORK)
_BASE_FILE: Final = re.compile(
    rf"{BASE}/(?:[A-Za-z0-9_-]{{1,64}}/)?[A-Za-z0-9_][A-Za-z0-9_-]{{0,63}}(?:\.[A-Za-z0-9_-]{{1,32}}){{0,3}}"
    r"\.(?:safetensors|json|jsonl|md|txt|model)"
)  # loading them executes no code
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 16 << 30


def is_taken(name: str) -> bool:
    """Return whether `onboard push` writes files with this name."""
    return name in OWN_FILES or _BASE_FILE.fullmatch(name) is not None


def require_taken(place: object, digests: Iterable[str], sizes: Mapping[str, int]) -> None:
    """Check that a version may contain the files in a manifest.

    Args:
        digests: names of the listed files.
        sizes: in bytes, of the existing files.

    Raises:
        InputError: a name is not allowed, or there are too many or too large files.
        DamagedError: a file is missing.
    """
    names = list(digests)
    for name in names:
        if not is_taken(name):
            raise InputError("pull-file-name-invalid", file=name[:100], place=place, own_files=list(OWN_FILES))
        if name not in sizes:
            raise DamagedError("pull-file-missing", file=name, place=place)
    if len(names) > _MOST_FILES:
        raise InputError("pull-too-many-files", place=place, files=len(names), limit=_MOST_FILES)
    if sum(sizes[name] for name in names) > _MOST_BYTES:
        raise InputError("pull-too-large", place=place, limit_gibibytes=_MOST_BYTES >> 30)


def require_free(output: Path, contents: Mapping[str, bytes]) -> None:
    """Raise ConflictError if an existing file would be overwritten with other contents."""
    for name, content in contents.items():
        target = output / name
        if target.is_symlink() or (target.exists() and not (target.is_file() and target.read_bytes() == content)):
            raise ConflictError("pull-file-exists", file=str(target))
