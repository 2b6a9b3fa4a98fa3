"""Steps that are timed in turn, in a new order each round, so that a disturbance of the machine meets all alike."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

Step = Callable[[], Any]


def seconds_in_turn(
    steps: Mapping[str, Step],
    rounds: int,
    warm_up: int,
    device: str = "cpu",
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of every step, in each of the rounds after the warm-up.

    Args:
        steps: by name.
        rounds: that are counted.
        warm_up: rounds before them.
        device: that steps may leave running, cpu or cuda: it is waited for before the clock starts and before it stops.
        clock: `time.process_time` counts only what this process computes, whatever else the machine does.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    order, shuffle = list(steps), random.Random(0).shuffle
    for turn in range(warm_up + rounds):
        shuffle(order)
        for name in order:
            _finish(device)
            started = clock()
            steps[name]()
            _finish(device)
            if turn >= warm_up:
                seconds[name].append(clock() - started)
    return seconds


def _finish(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.synchronize(device)
