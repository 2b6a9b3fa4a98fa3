"""Parts of a batch side by side on a CPU's cores, each on threads of its own.

torch's threads share every single operation and wait for one another at its end. With models and batches as small as
here that gains nothing on two cores, and beside other programs it loses much: all wait for the one that has no core.

They are always the same threads, whoever asks: each that computes has buffers of its own, of some twenty megabytes, and
a server's threads come and go.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

import torch

PARTS: Final = 4  # most threads; how a batch is cut does not depend on the cores: the same bytes on all machines
FEWEST_ROWS: Final = 4  # of a batch for each of its parts, beyond two
PART_COSTS: Final = 64  # tokens that could be computed while one more part is begun: of `mini` on one core
_MOST_PARTS: Final = 8  # that padding alone can ask for

T = TypeVar("T")
R = TypeVar("R")
_making: Final = threading.Lock()


def even_parts(lengths: Sequence[int], most: int) -> list[slice]:
    """Rows that are sorted by length, in parts that two cores are done with soonest, the longest first.

    An even number of parts of like cost: with an odd one a core would wait for the other at the end of every step.

    Args:
        lengths: tokens of each row, ascending; a part is padded to its last row's.
        most: rows of a part.
    """
    if len(lengths) <= min(most, FEWEST_ROWS):
        return [slice(0, len(lengths))] if lengths else []
    fewest = max(PARTS if len(lengths) >= PARTS * FEWEST_ROWS else 2, -(-len(lengths) // most))
    counts = range(fewest + fewest % 2, max(fewest + 1, _MOST_PARTS) + 1, 2)
    return min((_at_most(count, lengths, most) for count in counts), key=lambda parts: _rounds(parts, lengths))


def _rounds(parts: Sequence[slice], lengths: Sequence[int]) -> int:
    """Tokens that two cores compute one after the other: the parts go to whichever is free."""
    busy = [0, 0]
    for part in parts:
        busy[busy[1] < busy[0]] += _cost(part.stop - part.start, lengths[part.stop - 1])
    return max(busy)


def _at_most(count: int, lengths: Sequence[int], most: int) -> list[slice]:
    """So many parts whose dearest is as cheap as can be."""
    low, high = _cost(1, lengths[-1]), _cost(most, lengths[-1])
    while low < high:
        middle = (low + high) // 2
        if len(_costing(middle, lengths, most)) <= count:
            high = middle
        else:
            low = middle + 1
    return _costing(low, lengths, most)


def _costing(limit: int, lengths: Sequence[int], most: int) -> list[slice]:
    """As few parts as can be that cost no more than that; one row always fits."""
    parts, end = [], len(lengths)
    while end:
        begin = max(0, end - min(most, (limit - PART_COSTS) // lengths[end - 1]))
        parts.append(slice(begin, end))
        end = begin
    return parts


def _cost(rows: int, longest: int) -> int:
    return rows * longest + PART_COSTS


def side_by_side(device: torch.device, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """`work` of every part, in their order; on a CPU at the same time, on threads that stay; elsewhere one by one.

    Args:
        device: that computes.
        work: may not rely on the caller's `inference_mode` or `no_grad`, nor call this function.
        parts: of a batch.
    """
    if device.type != "cpu":
        return [work(part) for part in parts]
    threads = torch.get_num_threads()
    with _making:
        pool = _pool(threads, 1 if len(parts) < 2 else min(threads, PARTS))
    return list(pool.map(work, parts))


@cache
def _pool(threads: int, workers: int) -> ThreadPoolExecutor:
    """So many workers, for so many cores in all."""
    ready = threading.Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # torch sets a thread up when it is first asked: what was set before would be lost
        torch.set_num_threads(threads // workers)
        ready.wait()

    pool = ThreadPoolExecutor(workers, "cores", begin)
    for _ in range(workers):
        pool.submit(int)  # a thread starts when there is work for it and no other is idle
    ready.wait()
    torch.set_num_threads(threads)  # what threads that begin later take over
    return pool


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads are not copied
