"""The arms in turn, and what a service of so many tasks keeps and how soon it answers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.harness.in_turn import Step, seconds_in_turn
from bench.harness.served_tasks import services_of, store_tasks
from bench.serve.arms import ARMS, BASE, MERGED, ONE, OURS, PEFT, RECENT, WORDS, Arms
from bench.serve.drawing import DRAWS
from bench.serve.loras import SLOTS, RecentLoras, lora, lora_bytes, stored_loras

WARM_UP: Final = 3


@dataclass(frozen=True)
class Load:
    """The requests of a round.

    Args:
        rows: of a batch.
        tokens: of each text.
        rounds: that are counted.
        peft_gib: memory that PEFT's adapters may take; where they take more that arm is left out.
    """

    rows: int
    tokens: int
    rounds: int
    peft_gib: float


def measure(arms: Arms, tasks: int, load: Load) -> dict[str, Any]:
    """Every arm at so many tasks, evenly drawn and by Zipf's law."""
    backbone, room = arms.engine.backbone, load.peft_gib * 2**30
    fits = lora_bytes(backbone) * tasks <= room
    model = lora(arms.fresh(), tasks).to(arms.engine.device) if fits else None
    few = lora(arms.fresh(), SLOTS).to(arms.engine.device)
    recent = RecentLoras(few, stored_loras(backbone, tasks, room).to(arms.engine.device))
    single = {ONE: arms.one_task(), MERGED: arms.merged(), BASE: arms.base()}
    kinds: dict[str, Any] = {}
    for kind in DRAWS:
        steps = {OURS: arms.ours(tasks, kind), RECENT: arms.recent(recent, few, tasks, kind), **single}
        if model is not None:
            steps[PEFT] = arms.peft(model, tasks, kind)
        seconds = seconds_in_turn(steps, load.rounds, WARM_UP, str(arms.engine.device))
        kinds[kind] = {arm: _figures(seconds, arm, load.rows) for arm in ARMS if arm in seconds}
    return kinds


def _figures(seconds: dict[str, list[float]], arm: str, rows: int) -> dict[str, Any]:
    own = seconds[arm]
    return {
        "rows_per_second": round(rows / statistics.median(own), 1),
        "p50_milliseconds": round(1e3 * statistics.median(own), 3),
        "p99_milliseconds": round(1e3 * float(np.quantile(own, 0.99)), 3),
        "of_merged": _ratios(own, seconds[MERGED]),
        "of_one_task": _ratios(own, seconds[ONE]),
    }


def _ratios(own: Sequence[float], others: Sequence[float]) -> list[float]:
    """Throughput compared with another arm's, batch by batch: the median, and between which values nine of ten lie."""
    ratios = [other / one for one, other in zip(own, others, strict=True)]
    return [round(float(share), 3) for share in np.quantile(ratios, (0.5, 0.05, 0.95))]


def asked_service(base: Any, tasks: int, rounds: int, folder: Path, device: str) -> dict[str, Any]:
    """A service of so many tasks: the first answer of a task next to a later one, and the stored bytes of each."""
    from onboard.serving import Predictor

    services = services_of(base, folder, device)
    try:
        names = store_tasks(services, base, tasks, WORDS)
        predictor = Predictor(services)
        predictor.predict([{"task": names[0], "text": "a fine day"}])  # what every first answer waits for
        cold, warm = [], []
        for name in names[1 : 1 + rounds] or names:
            asked = [{"task": name, "text": "a fine day"}]
            cold.append(_seconds(partial(predictor.predict, asked)))
            warm.append(_seconds(partial(predictor.predict, asked)))
        for start in range(0, tasks, 256):
            predictor.predict([{"task": name, "text": "a fine day"} for name in names[start : start + 256]])
        return {
            "cold_milliseconds": round(1e3 * statistics.median(cold), 3),
            "warm_milliseconds": round(1e3 * statistics.median(warm), 3),
            "cold_to_warm": round(statistics.median(c / w for c, w in zip(cold, warm, strict=True)), 3),
            "bytes_a_task": round(predictor.kept_bytes / tasks),
        }
    finally:
        services.close()


def _seconds(step: Step) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started
