"""The cost of the daily numbers while serving: the same requests with and without them, in turn, in one process."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.drift.weeks import Served
from bench.harness.in_turn import seconds_in_turn
from bench.harness.served_tasks import services_of
from bench.heldout.material import Cell
from onboard.domain.task import EmbeddingVersion, Task
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.serving.predictor import Predictor
from onboard.storage.drift import training_facts
from onboard.storage.embedding import embedding_facts
from onboard.storage.novelty import novelty_facts, novelty_tensors
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import described_readout, pack_weights, weights_digest

SIZES: Final = (1, 16, 256)  # texts of a request
TEXTS: Final = 256  # of a timed step
_WARM_UP: Final = 2
_DRAWS: Final = 2000  # of the bootstrap


def overhead(cell: Cell, version: Served, rounds: int) -> list[dict[str, Any]]:
    """Median CPU seconds of `TEXTS` texts with and without the numbers, by the texts of a request.

    The writing, which otherwise happens every 5 seconds, ends every step with them. The overhead is the median over
    rounds of the ratio within a round, with its 95% interval (bootstrap over rounds).
    """
    base = cell.place.base
    texts, fresh = [row.text_a for row in cell.test], count()
    with tempfile.TemporaryDirectory() as folder, closing(services_of(base, Path(folder), "cpu")) as services:
        _publish(services, cell, version)
        predictors = {name: Predictor(services, record=name == "on") for name in ("off", "on")}
        lines = []
        for size in SIZES:

            def step(name: str, size: int = size) -> Callable[[], None]:
                return lambda: _answer(predictors[name], cell.task, texts, fresh, size)

            timed = seconds_in_turn(
                {name: step(name) for name in predictors}, rounds, _WARM_UP, clock=time.process_time
            )
            median = {name: statistics.median(seconds) for name, seconds in timed.items()}
            extra = 100 * (np.array(timed["on"]) / np.array(timed["off"]) - 1)
            drawn = np.random.default_rng(0).choice(extra, (_DRAWS, rounds))
            low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
            lines.append({
                "texts": size, "off": round(median["off"], 4), "on": round(median["on"], 4),
                "overhead": round(float(np.median(extra)), 2), "low": round(float(low), 2),
                "high": round(float(high), 2), "rounds": rounds,
            })  # fmt: skip
        for predictor in predictors.values():
            predictor.close()
    return lines


def _answer(predictor: Predictor, task: str, texts: Sequence[str], fresh: Any, size: int) -> None:
    """No text comes twice, as a repeated text would not be counted."""
    for start in range(0, TEXTS, size):
        predictor.predict([
            {"task": task, "text": f"{texts[place % len(texts)]} {next(fresh)}"} for place in range(start, start + size)
        ])  # fmt: skip
    predictor.flush()


def _publish(services: Services, cell: Cell, version: Served) -> None:
    """The readout alone as the first version of its task."""
    base, dataset, words = cell.place.base, cell.dataset, cell.bench.words
    tensors = readout_tensors(version.readout)
    draft = EmbeddingVersion(
        task=cell.task, version=1, kind="onboarded", artifact="", embedding_digest=weights_digest(tensors),
        backbone_digest=base.backbone_digest, base_digest=base.digest, hypernetwork_version=1, dataset_digest="",
        parent="own", task_kind=dataset.kind, labels=dataset.labels, words=tuple(words), method="linear",
        code_version="",
    )  # fmt: skip
    facts = {
        **embedding_facts(draft, ""), **novelty_facts(version.novelty), **training_facts(version.training),
        **described_readout(version.readout),
    }  # fmt: skip
    content = pack_weights({**tensors, **novelty_tensors(version.novelty)}, facts)
    stored = replace(draft, artifact=services.store(content, "weights"))
    with services.database.write() as session:
        VersionRepository(session).add(stored, Task(cell.task, dataset.kind, dataset.labels, tuple(words)))
