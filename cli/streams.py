"""Handle standard streams that are closed, full, or in an encoding that lacks characters."""

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
_NAMES: Final = ("stdin", "stdout", "stderr")  # by descriptor
_FOR_PEOPLE, _FOR_PROGRAMS = "onboard.people", "onboard.programs"


def open_standard_streams(*, as_json: bool) -> None:
    """Make all three usable, before anything is opened.

    A closed one is opened on the null device: else the next file, the database for example, would take its place and
    be written to by whatever prints. Characters that an encoding lacks are replaced: by JSON's
    escapes in documents, by similar characters for people.
    """
    for descriptor in range(len(_NAMES)):
        if _is_closed(descriptor):
            os.open(os.devnull, os.O_WRONLY if descriptor else os.O_RDONLY)  # the lowest that is free: this one
    for descriptor, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.dup(descriptor), "w" if descriptor else "r", encoding="utf-8"))
    codecs.register_error(_FOR_PEOPLE, _for_people)
    codecs.register_error(_FOR_PROGRAMS, _for_programs)
    for stream, errors in ((sys.stdout, _FOR_PROGRAMS if as_json else _FOR_PEOPLE), (sys.stderr, _FOR_PEOPLE)):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def unwritable(error: OSError) -> StorageError | None:
    """The error for standard output that does not accept data; None for any other failure."""
    if error.errno not in _UNWRITABLE or error.filename is not None:
        return None
    sys.stdout = io.StringIO()  # Python would try again as it ends, and exit with 120
    return StorageError("output-stream-failed", reason=os.strerror(error.errno))


def say_no_more() -> None:
    """Discard what is still written to standard error, which does not accept data."""
    sys.stderr = io.StringIO()  # as above


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
    """JSON's own escapes, in pairs beyond the first 65,536 signs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2)), error.end
