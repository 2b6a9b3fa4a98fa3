"""Write a base to a folder atomically, from any source."""

from __future__ import annotations

from pathlib import Path

from onboard.bases import Base
from onboard.contract.base_folder import place_base, whole_folder
from onboard.errors import ConflictError, NotAllowedError, StorageError

__all__ = ["place_base", "whole_folder", "write_beside"]


def write_beside(base: Base, name: str, content: bytes) -> Path:
    """Write a file to the folder of a base that its digest does not cover, atomically.

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
