"""Halve the number of rows at once when a GPU's memory is too small, and report it. The result is the same."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import torch

from onboard.errors import OutOfMemoryError
from onboard.model.cores import even_parts

PART_COSTS_ON_A_GPU: Final = 8192  # overhead of a part in tokens
T = TypeVar("T")
_logger = logging.getLogger(__name__)
_CUBLAS = "CUBLAS_STATUS_ALLOC_FAILED"  # an out-of-memory error of the library of matrix products


class RowsAtOnce:
    """The number of rows that go through the model at once, halved, down to one, whenever they do not fit.

    Args:
        limit: initial number of rows at once; None takes all.
        on_halved: receives the number of rows that did not fit, and the new number.
    """

    def __init__(self, limit: int | None = None, on_halved: Callable[[int, int], None] = lambda *_: None) -> None:
        self.limit = limit
        self.on_halved = on_halved

    def parts(self, rows: int) -> list[slice]:
        """Divide `rows` rows into parts of at most `limit`."""
        size = self._size(rows)
        return [slice(start, start + size) for start in range(0, rows, size)]

    def parts_of_like_length(self, lengths: Sequence[int], device: torch.device) -> list[slice]:
        """Divide rows, sorted by length, into the cheapest parts of at most `limit` rows.

        Args:
            lengths: tokens of each row, ascending; a part is padded to its last row's length.
            device: the device that computes; for a CPU, see `even_parts`.
        """
        most = self._size(len(lengths))
        if device.type == "cpu":
            return even_parts(lengths, most)
        cheapest, begins = [0], [0]
        for end, longest in enumerate(lengths, 1):
            cost, begin = min((cheapest[at] + (end - at) * longest, at) for at in range(max(0, end - most), end))
            cheapest.append(cost + PART_COSTS_ON_A_GPU)
            begins.append(begin)
        parts, end = [], len(lengths)
        while end:
            parts.append(slice(begins[end], end))
            end = begins[end]
        return parts[::-1]

    def fitting(self, rows: int, work: Callable[[], T]) -> T:
        """Return the result of `work`, which processes `rows` rows in `parts`, and rerun it whenever they do not fit.

        Raises:
            OutOfMemoryError: not even one row fits.
        """
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                reason = str(error).splitlines()[0]
            # Outside the handler, because the traceback holds the tensors that filled the memory.
            self._halve(self._size(rows), reason)

    def _size(self, rows: int) -> int:
        return max(1, rows if self.limit is None else min(rows, self.limit))

    def _halve(self, tried: int, reason: str) -> None:
        if tried <= 1:
            raise too_little_memory("one row of this dataset", reason)
        self.limit = tried // 2
        give_memory_back()
        _logger.warning("The GPU's memory is too small for %d rows at once: going on with %d", tried, self.limit)
        self.on_halved(tried, self.limit)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a GPU's memory was too small, not the machine's."""
    return isinstance(error, torch.OutOfMemoryError) or _CUBLAS in str(error)


def too_little_memory(what: str, reason: str) -> OutOfMemoryError:
    """Return the error for work that does not fit even alone; `reason` is torch's message."""
    return OutOfMemoryError("gpu-memory-too-small", work=what, reason=reason)


@contextmanager
def memory_trouble_told(what: str) -> Iterator[None]:
    """Raise OutOfMemoryError if a GPU's memory is too small for `what`."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise too_little_memory(what, str(error).splitlines()[0]) from None


def give_memory_back() -> None:
    """Return unused memory to the GPU, to avoid fragmentation."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
