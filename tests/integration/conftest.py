"""Jobs of a few steps on the tiny base."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_jobs import Desk

from onboard import pipeline
from onboard.services import Services
from onboard.train.fewshot import FewShotSettings, Trained


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned does not matter here, how often and in which order does."""
    monkeypatch.setattr(pipeline, "FewShotSettings", partial(FewShotSettings, steps=5, batch=8))


@pytest.fixture
def desk(tiny_services: Services, tmp_path: Path, few_steps: None) -> Desk:
    return Desk(tiny_services, tmp_path)


@pytest.fixture
def trained_as(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the training come out with this embedding."""

    def choose(z: np.ndarray) -> None:
        monkeypatch.setattr(pipeline, "train_embedding", lambda *arguments: Trained(z, (0.5,), (1.0,), 0.0))

    return choose
