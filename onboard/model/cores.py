"""Parts of a batch side by side on a CPU's cores, each on threads of its own.

torch's threads share every single operation and wait for one another at its end. With models and batches as small as
here that gains nothing on two cores, and beside other programs it loses much: all wait for the one that has no core.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

import torch

PARTS: Final = 4  # that a batch is cut into on a CPU, whatever its cores: the same bytes on all machines
FEWEST_ROWS: Final = 4  # of a part that is made for the sake of another core

T = TypeVar("T")
R = TypeVar("R")
_making: Final = threading.Lock()


def side_by_side(device: torch.device, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
    """`work` of every part, in their order; on a CPU of several cores at the same time, elsewhere one by one.

    Args:
        device: that computes.
        work: may not rely on the caller's `inference_mode` or `no_grad`, nor call this function.
        parts: of a batch.
    """
    if device.type != "cpu" or len(parts) < 2 or torch.get_num_threads() < 2:
        return [work(part) for part in parts]
    with _making:
        pool = _pool(torch.get_num_threads())
    return list(pool.map(work, parts))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads for so many cores in all."""
    workers = min(threads, PARTS)
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
