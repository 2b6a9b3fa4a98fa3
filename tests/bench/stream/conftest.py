"""Made rows for every task of the stream on the tiny base, and settings of two steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.stream_rows import make_datasets

from bench.harness import as_a_job
from bench.stream import learning
from bench.stream.material import Material
from bench.stream.methods import METHODS
from bench.stream.sharing import Journal
from bench.transfer.recipes import Recipe
from onboard.bases import Base
from onboard.probe.settings import FinalSettings, ProbeSettings
from onboard.train.settings import FewShotSettings, TuningSettings

QUICK = TuningSettings(steps=2, most_steps=2, learning_rate=0.01, sampled=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets for every task, one folder for all tests of a file."""
    return make_datasets(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method learns for two steps."""
    short = FewShotSettings(steps=2, most_steps=2, learning_rate=0.3, seeds=1, curve=())
    monkeypatch.setattr(as_a_job, "SETTINGS", short)
    monkeypatch.setattr(learning, "PROBE", ProbeSettings(finals=FinalSettings(steps=0)))
    monkeypatch.setattr(learning, "LORA_RECIPE", Recipe(0.01, 4))
    for name, method in METHODS.items():
        if method.tuning:
            guarded = method.guard and replace(method.guard, texts=8)
            quick = replace(method, tuning=replace(QUICK, beta=method.tuning.beta), guard=guarded)
            monkeypatch.setitem(METHODS, name, quick)


@pytest.fixture
def material(tiny_base: Base, data: Path) -> Material:
    """What a stream learns from: the tiny base, 12 rows of a task, 10 to test."""
    return Material(tiny_base, data, shots=12, test_rows=10)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Where the steps of every method are written, empty."""
    return Journal(tmp_path / "steps.jsonl", {method: {} for method in METHODS})
