"""Compute parts of a batch in parallel on CPU cores, each with a share of the threads.

torch's threads share every operation and wait for one another at its end. For models and batches of this size, that
gains nothing on two cores. On a busy machine it loses much, because all wait for the thread without a core.

The same threads are used for all callers, because each has buffers of about twenty megabytes, and a server's threads
come and go.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

import torch

# maximum number of threads; the division of a batch does not depend on the cores, for identical bytes on all machines
PARTS: Final = 4
FEWEST_ROWS: Final = 4  # minimum rows per part if there are more than two parts
PART_COSTS: Final = 64  # overhead of a part in tokens; measured with `mini` on one core
_MOST_PARTS: Final = 8  # maximum number of parts for less padding

T = TypeVar("T")
R = TypeVar("R")
_making: Final = threading.Lock()


def even_parts(lengths: Sequence[int], most: int) -> list[slice]:
    """Divide rows, sorted by length, into parts that two cores finish soonest, longest first.

    The number of parts is even and their costs are similar; otherwise a core would wait at the end of every step.

    Args:
        lengths: tokens of each row, ascending; a part is padded to its last row's length.
        most: maximum number of rows per part.
    """
    if len(lengths) <= min(most, FEWEST_ROWS):
        return [slice(0, len(lengths))] if lengths else []
    fewest = max(PARTS if len(lengths) >= PARTS * FEWEST_ROWS else 2, -(-len(lengths) // most))
    counts = range(fewest + fewest % 2, max(fewest + 1, _MOST_PARTS) + 1, 2)
    return min((_at_most(count, lengths, most) for count in counts), key=lambda parts: _rounds(parts, lengths))


def _rounds(parts: Sequence[slice], lengths: Sequence[int]) -> int:
    """Return the tokens that the busier of two cores computes, when each takes the next part once it is free."""
    busy = [0, 0]
    for part in parts:
        busy[busy[1] < busy[0]] += _cost(part.stop - part.start, lengths[part.stop - 1])
    return max(busy)


def _at_most(count: int, lengths: Sequence[int], most: int) -> list[slice]:
    """Return this many parts with the lowest possible maximum cost."""
    low, high = _cost(1, lengths[-1]), _cost(most, lengths[-1])
    while low < high:
        middle = (low + high) // 2
        if len(_costing(middle, lengths, most)) <= count:
            high = middle
        else:
            low = middle + 1
    return _costing(low, lengths, most)


def _costing(limit: int, lengths: Sequence[int], most: int) -> list[slice]:
    """Return the fewest parts with at most this cost; one row always fits."""
    parts, end = [], len(lengths)
    while end:
        begin = max(0, end - min(most, (limit - PART_COSTS) // lengths[end - 1]))
        parts.append(slice(begin, end))
        end = begin
    return parts


def _cost(rows: int, longest: int) -> int:
    return rows * longest + PART_COSTS


def side_by_side(device: torch.device, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """Apply `work` to every part and return the results in order: in parallel on a CPU, otherwise one by one.

    Args:
        work: must not depend on the caller's `inference_mode` or `no_grad`, nor call this function.
    """
    if device.type != "cpu":
        return [work(part) for part in parts]
    threads = torch.get_num_threads()
    with _making:
        pool = _pool(threads, 1 if len(parts) < 2 else min(threads, PARTS))
    return list(pool.map(work, parts))


@cache
def _pool(threads: int, workers: int) -> ThreadPoolExecutor:
    """Return a pool of workers that share a number of threads."""
    ready = threading.Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # torch initializes a thread on first use and would overwrite an earlier setting
        torch.set_num_threads(threads // workers)
        ready.wait()

    pool = ThreadPoolExecutor(workers, "cores", begin)
    for _ in range(workers):
        pool.submit(int)  # starts a thread, because all others are busy
    ready.wait()
    torch.set_num_threads(threads)  # the default for threads that start later
    return pool


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads are not copied by fork
