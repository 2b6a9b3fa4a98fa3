"""Which files of a repository are taken from the hub, and that they overwrite nothing."""

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
)  # none is executed when it is loaded
_MOST_FILES: Final = 200
_MOST_BYTES: Final = 16 << 30


def is_taken(name: str) -> bool:
    """Whether a file of this name is one that `onboard push` puts there."""
    return name in OWN_FILES or _BASE_FILE.fullmatch(name) is not None


def require_taken(place: object, digests: Iterable[str], sizes: Mapping[str, int]) -> None:
    """See that what a manifest lists is what a version may have.

    Args:
        place: of the repository, for messages.
        digests: names of the files that it lists.
        sizes: in bytes, of the files that are there.

    Raises:
        InputError: a name is not one that is taken, there are too many, or they are too large.
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
    """Raise ConflictError where a file of the folder would be overwritten with something else."""
    for name, content in contents.items():
        target = output / name
        if target.is_symlink() or (target.exists() and not (target.is_file() and target.read_bytes() == content)):
            raise ConflictError("pull-file-exists", file=str(target))
