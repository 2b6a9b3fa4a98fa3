"""Putting a base into a folder, whole or not at all, wherever its files come from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from onboard.bases import Base, folder_digest
from onboard.domain.private import part_beside
from onboard.errors import ConflictError, DamagedError, NotAllowedError, StorageError


def place_base(target: Path, digest: str, fill: Callable[[Path], object]) -> Path:
    """The folder with the base of that digest and nothing else; one that holds it already stays as it is.

    Args:
        fill: writes the base's files into the folder that it is given; that folder is to be made by it.

    Raises:
        ConflictError: the folder holds something else.
        DamagedError: what came is not the base.
        OSError: it cannot be written.
    """
    if target.exists():
        if folder_digest(target) != digest:
            raise ConflictError("base-folder-occupied", target=target, digest=digest)
        return target
    with whole_folder(target) as part:
        fill(part)
        if folder_digest(part) != digest:
            raise DamagedError("base-received-differs", digest=digest)
    return target


def write_beside(base: Base, name: str, content: bytes) -> Path:
    """A file in the folder of a base that its digest does not cover, whole or not at all.

    Raises:
        ConflictError: base.json names another file of that name.
        NotAllowedError, StorageError: it cannot be written.
    """
    target = base.folder / name
    if name.partition(".")[0] in base.document:
        raise ConflictError("base-part-fixed", base=base.name, name=name)
    part = target.with_name(f".{name}.part")
    try:
        part.write_bytes(content)
        part.chmod(0o644)
        return part.replace(target)
    except PermissionError as error:
        raise NotAllowedError("base-folder-forbidden", target=target) from error
    except OSError as error:
        raise StorageError("base-folder-not-writable", target=target, reason=error.strerror) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Where to make a folder that becomes `target` when all went well, and else is gone."""
    part = part_beside(target)
    try:
        yield part
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
