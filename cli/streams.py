"""Standard input, output and error, even if they are closed, full, or have an encoding that lacks characters."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from typing import Final

from onboard.errors import StorageError

_PLAIN: Final = {"→": "->", "…": "...", "–": "-", "—": "-", "−": "-", "·": "*", "×": "x", "’": "'", "“": '"', "”": '"'}
_DRAWN: Final = {**dict.fromkeys("─━═╌┄", "-"), **dict.fromkeys("│┃║", "|"), **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╞╡╪", "+")}
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)
_NAMES: Final = ("stdin", "stdout", "stderr")  # by file descriptor
_FOR_PEOPLE, _FOR_PROGRAMS = "onboard.people", "onboard.programs"


def open_standard_streams(*, as_json: bool) -> None:
    """Make all three usable before anything is opened.

    A closed stream is opened on the null device. Otherwise the next opened file, such as the database, would get its
    descriptor, and printing would write to it. Characters that the encoding lacks are replaced: by JSON escapes in
    documents, and by similar characters in other output.
    """
    for descriptor in range(len(_NAMES)):
        if _is_closed(descriptor):
            # the lowest free descriptor, which is this one
            os.open(os.devnull, os.O_WRONLY if descriptor else os.O_RDONLY)
    for descriptor, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.dup(descriptor), "w" if descriptor else "r", encoding="utf-8"))
    codecs.register_error(_FOR_PEOPLE, _for_people)
    codecs.register_error(_FOR_PROGRAMS, _for_programs)
    for stream, errors in ((sys.stdout, _FOR_PROGRAMS if as_json else _FOR_PEOPLE), (sys.stderr, _FOR_PEOPLE)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def unwritable(error: OSError) -> StorageError | None:
    """Return the error if standard output cannot be written; None for any other failure."""
    if error.errno not in _UNWRITABLE or error.filename is not None:
        return None
    sys.stdout = io.StringIO()  # otherwise Python would write again on exit, and exit with 120
    return StorageError("output-stream-failed", reason=os.strerror(error.errno))


def _is_closed(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _for_people(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or _DRAWN.get(sign) or "?" for sign in signs), error.end


def _for_programs(error: UnicodeError) -> tuple[str, int]:
    """Encode characters as JSON escapes, as surrogate pairs above U+FFFF."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2)), error.end
