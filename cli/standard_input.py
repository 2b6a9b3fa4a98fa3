"""What comes from standard input, as a file for as long as it is read."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onboard.domain.submission import Submission

STANDARD_INPUT: Final = "-"
NAME: Final = "stdin"  # of the file, which errors and remedies name


@contextmanager
def spooled() -> Iterator[Path]:
    """A file with the JSON lines of standard input; gone when the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / f"{NAME}.jsonl"
        with copy.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        yield copy


@contextmanager
def readable(submission: Submission) -> Iterator[Submission]:
    """The submission, whose dataset is a file where it was standard input."""
    if str(submission.dataset) != STANDARD_INPUT:
        yield submission
        return
    with spooled() as copy:
        yield replace(submission, dataset=copy)
