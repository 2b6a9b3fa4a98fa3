"""Limit the decoded size of a file: rows, values and bytes are counted before they are decoded.

A few hundred bytes of a compressed, dictionary-encoded or null column can expand to gigabytes, which the size of the
file does not limit.
"""

from __future__ import annotations

from typing import Final

from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import EXPANDED_FREE_BYTES, MAX_EXPANSION, MAX_FILE_BYTES, MAX_ROWS, MAX_VALUES

_FEWER: Final = "Pass fewer rows; a few thousand are enough."


class Budget:
    """Counts the declared content of a file, then the size of its rows.

    Args:
        file_bytes: size of the file, without gzip.
    """

    def __init__(self, file_bytes: int) -> None:
        self._most_stored = min(MAX_FILE_BYTES, max(EXPANDED_FREE_BYTES, file_bytes * MAX_EXPANSION))
        self._rows = self._values = self._stored = self._decoded = 0

    def take_rows(self, count: int) -> None:
        """Count rows. Raises UnreadableError if there are too many."""
        self._rows += _natural(count)
        if self._rows > MAX_ROWS:
            message = f"has {self._rows:,} rows; the limit is {MAX_ROWS:,}"
            raise UnreadableError("too_many_rows", message, _FEWER)

    def take_values(self, count: int) -> None:
        """Count values of all columns, including those in lists. Raises UnreadableError."""
        self._values += _natural(count)
        if self._values > MAX_VALUES:
            message = f"has {self._values:,} values; the limit is {MAX_VALUES:,}"
            raise UnreadableError("too_many_values", message, "Pass only the text and the label, with fewer rows.")

    def take_stored(self, count: int) -> None:
        """Count decompressed bytes. Raises UnreadableError."""
        self._stored += _natural(count)
        if self._stored > MAX_FILE_BYTES:
            raise too_large(row=None)
        if self._stored > self._most_stored:
            message = f"holds more than {MAX_EXPANSION} times its size when decompressed"
            raise UnreadableError("too_large", message, "Write it again without compression.")

    def take_decoded(self, count: int, row: int) -> None:
        """Count bytes of the values up to a row. Raises UnreadableError."""
        self._decoded += count
        if self._decoded > MAX_FILE_BYTES:
            raise too_large(row)


def too_large(row: int | None) -> UnreadableError:
    """Return the error for a file with too much content."""
    return UnreadableError("too_large", f"holds more than {MAX_FILE_BYTES >> 20:,} MiB", _FEWER, row=row)


def _natural(count: int) -> int:
    if count < 0:
        raise UnreadableError("bad_arrow", f"says that it holds {count} of something", "Write the file again.")
    return count
