"""Tuned jobs on the tiny base: real tuning and a real guard, with steps so small or large that the verdict is sure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.harness.generated import generated_digest
from onboard.bases import Base
from onboard.domain.task import BaseRecord, EmbeddingVersion, HypernetworkVersion
from onboard.errors import JobFailedError
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.model.batch import TrainingSet
from onboard.pipeline import tune as tuned
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.storage.embedding import unpack_embedding
from onboard.train.settings import TuningSettings
from onboard.train.tuning import Tuned
from support.real_jobs import Desk

TUNED = ["check", "probe", "train", "tune", "guard", "evaluate"]  # stages before publishing


def tune_gently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that no task can notice: the guard lets them through."""
    gentle = partial(TuningSettings, steps=3, most_steps=3, learning_rate=1e-7, z_learning_rate=1e-3)
    monkeypatch.setattr(tuned, "TuningSettings", gentle)


def tune_violently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that every task notices: the guard refuses even an eighth of them."""
    violent = partial(TuningSettings, steps=4, most_steps=4, learning_rate=0.5, beta=0.0)
    monkeypatch.setattr(tuned, "TuningSettings", violent)


def diverging_on_less_than(rows: int, tune: Callable[..., Tuned]) -> Callable[..., Tuned]:
    """`tune`, which diverges on the folds of so many rows."""

    def tuned_or_not(engine: Any, training_set: TrainingSet, *rest: Any) -> Tuned:
        if len(training_set.rows.ids) < rows:
            raise JobFailedError("Tuning the hypernetwork diverged: loss nan at step 1.")
        return tune(engine, training_set, *rest)

    return tuned_or_not


def record_of(services: Services, base: Base) -> BaseRecord:
    with services.database.read() as session:
        return BaseRepository(session).get(base.digest)


def line_of(services: Services, base: Base) -> list[HypernetworkVersion]:
    """The base's hypernetworks, oldest first."""
    with services.database.read() as session:
        return list(BaseRepository(session).hypernetworks(base.digest))


def made_weights(services: Services, base: Base, version: EmbeddingVersion) -> str:
    """Digest of the weights that a version's hypernetwork makes of its embedding."""
    z = unpack_embedding(services.read(version.artifact))
    hypernetwork = hypernetwork_at(services, base, version.hypernetwork_version, "cpu")
    with torch.no_grad():
        return generated_digest(hypernetwork(torch.from_numpy(z)[None]))


def dataset_artifact(desk: Desk, task: str) -> Path:
    """The file of a task's rows."""
    with desk.services.database.read() as session:
        artifact = SnapshotRepository(session).get(desk.version(task).dataset_digest).artifact
    path = desk.services.file(artifact)
    assert path is not None
    return path
