"""Where a GPU's memory is too small for a batch: half as many rows at once, and it is said. The result is the same."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import torch

from onboard.errors import OutOfMemoryError
from onboard.model.cores import even_parts

PART_COSTS_ON_A_GPU: Final = 8192  # tokens that a GPU could compute while one more part is begun
T = TypeVar("T")
_logger = logging.getLogger(__name__)
_CUBLAS = "CUBLAS_STATUS_ALLOC_FAILED"  # the same, as the library of matrix products says it


class RowsAtOnce:
    """How many rows go through the model at once: halved, down to one, whenever they do not fit, and kept so.

    Args:
        limit: rows at once, to begin with; None takes all that there are.
        on_halved: told how many rows did not fit, and how many are taken from now on.
    """

    def __init__(self, limit: int | None = None, on_halved: Callable[[int, int], None] = lambda *_: None) -> None:
        self.limit = limit
        self.on_halved = on_halved

    def parts(self, rows: int) -> list[slice]:
        """`rows` rows in parts of at most `limit`."""
        size = self._size(rows)
        return [slice(start, start + size) for start in range(0, rows, size)]

    def parts_of_like_length(self, lengths: Sequence[int], device: torch.device) -> list[slice]:
        """Rows that are sorted by length, in the parts of at most `limit` that are cheapest to compute.

        Args:
            lengths: tokens of each row, ascending; a part is padded to its last row's.
            device: that computes; a CPU does it with parts side by side, see `even_parts`.
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
        """The result of `work`, which takes `rows` rows in `parts`; it is done anew each time they do not fit.

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
            # here the error is gone, and with its trace the tensors that filled the memory
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
    """Whether a GPU's memory was too small; a machine's own memory is another matter."""
    return isinstance(error, torch.OutOfMemoryError) or _CUBLAS in str(error)


def too_little_memory(what: str, reason: str) -> OutOfMemoryError:
    """The error for what does not fit even alone; `reason` is torch's."""
    return OutOfMemoryError("gpu-memory-too-small", work=what, reason=reason)


@contextmanager
def memory_trouble_told(what: str) -> Iterator[None]:
    """Raise OutOfMemoryError in our words where a GPU's memory is too small for `what`."""
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise too_little_memory(what, str(error).splitlines()[0]) from None


def give_memory_back() -> None:
    """Return what nobody uses any more to the GPU, so that it can be had in one piece."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
