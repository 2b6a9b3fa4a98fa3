"""Standard input as a temporary file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onboard.domain.temporary import temporary_folder
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.domain.submission import Submission

STANDARD_INPUT: Final = "-"
NAME: Final = "stdin"  # name of the file
_SHOWN: Final = "standard input"  # its name in messages


@contextmanager
def spooled() -> Iterator[Path]:
    """Return a temporary file with the JSON lines of standard input."""
    with temporary_folder("onboard-input-") as folder:
        copy = folder / f"{NAME}.jsonl"
        with copy.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        yield copy


@contextmanager
def readable(submission: Submission) -> Iterator[Submission]:
    """Yield the submission, with standard input replaced by a temporary file."""
    if str(submission.dataset) != STANDARD_INPUT:
        yield submission
        return
    with spooled() as copy:
        try:
            yield replace(submission, dataset=copy)
        except InputError as error:  # an error about the rows, from this machine or a remote service
            _name_standard_input(error, copy)
            raise


def _name_standard_input(error: InputError, copy: Path) -> None:
    """Replace the name of the temporary file in an error by "standard input"."""

    def named(text: str) -> str:
        return text.replace(str(copy), _SHOWN).replace(copy.name, _SHOWN)

    error.message, error.remedy = named(error.message), named(error.remedy)
    for problem in error.data.get("problems", ()):
        problem.update({key: named(value) for key, value in problem.items() if isinstance(value, str)})
