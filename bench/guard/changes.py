"""Changes of a hypernetwork along a direction, as large as one likes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from bench.harness.as_a_job import train_embedding
from bench.harness.as_if_new import shipped_tasks, workbench
from bench.harness.unseen import make, read_rows
from onboard.bases import Base
from onboard.data.splits import shots
from onboard.guard.canaries import canary_ids
from onboard.model.batch import TrainingSet
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import Protection
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.tuning import tune

SHOTS: Final = 32
RANDOM: Final = "random"
TUNED: Final = ("naive origin", "naive answer", "held answer")  # on unseen kinds of tasks
_RANDOM_SHARE: Final = 0.2  # of each tensor's root mean square
_HELD: Final = TuningSettings(
    steps=40, batch=8, learning_rate=1e-3, z_learning_rate=1e-2, beta=10.0, regulariser="divergence", sampled=16
)
TUNINGS: Final = {"naive": replace(_HELD, beta=0.0), "held": _HELD}  # their own: a job's may change


def directions(base: Base, engine: Engine, folder: Path) -> dict[str, Callable[[], Hypernetwork]]:
    """Where the whole step leads, by name; each is made when it is called.

    "random": every weight moves by chance. "naive": tuned on a new task with nothing to hold the earlier ones, which is
    how forgetting comes about. "held": tuned with a regulariser that holds their answers on canaries.
    """
    by_name: dict[str, Callable[[], Hypernetwork]] = {RANDOM: partial(_random, engine.hypernetwork)}
    return by_name | {name: partial(_tuned, base, engine, folder, name) for name in TUNED}


def moved(before: Hypernetwork, after: Hypernetwork, share: float) -> Hypernetwork:
    """before + share · (after − before), with shares above 1 too."""
    changed = deepcopy(before).requires_grad_(False)
    theirs = dict(after.named_parameters())
    with torch.no_grad():
        for name, weight in changed.named_parameters():
            weight.lerp_(theirs[name], share)
    return changed


def _random(before: Hypernetwork) -> Hypernetwork:
    after = deepcopy(before).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in after.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(noise * (_RANDOM_SHARE * float(weight.square().mean().sqrt())))
    return after


def _tuned(base: Base, engine: Engine, folder: Path, name: str) -> Hypernetwork:
    how, kind = name.split()
    dataset = shots(make(kind, read_rows(folder, "validation"), 1), SHOTS, 0)
    bench = workbench(base, engine, dataset)
    rows = bench.labelled(dataset.train)
    trie = engine.trie(bench.words)
    start = np.mean([base.embeddings[source.name] for source in base.sources], axis=0)
    z = train_embedding(engine, start, rows, trie, replace(FewShotSettings(), seeds=1), 0).z
    protection = Protection(shipped_tasks(base, engine), canary_ids(engine.encoder, "tuning"))
    return tune(engine, TrainingSet(rows, trie), z, protection, TUNINGS[how], 0).hypernetwork
