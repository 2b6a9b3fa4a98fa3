"""Pack rows as gzipped JSON lines. Equal rows give equal bytes."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Sequence
from typing import Any, Final

from onboard.errors import DamagedError

ROWS: Final = 2000  # per part; bounds the memory, and how much is copied again when a row changed

_MOST_BYTES: Final = 1 << 30  # of a part as text; packed rows have a few kilobytes each


def pack_rows(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return rows as gzipped JSON lines, without a timestamp, so that equal rows give equal bytes."""
    lines = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return gzip.compress(lines.encode(), mtime=0)


def unpack_rows(data: bytes) -> list[dict[str, Any]]:
    """Read bytes that `pack_rows` wrote. Raises DamagedError."""
    try:
        return [dict(json.loads(line)) for line in _decompressed(data).splitlines()]
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error) as error:
        raise DamagedError("backup-part-unreadable", reason=error) from error


def _decompressed(data: bytes) -> bytes:
    """Decompress at most the size of a part, because a few kilobytes of gzip can expand to gigabytes."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    return content
