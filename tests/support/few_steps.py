"""Jobs that learn next to nothing, for tests of how often and in which order something is done."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from onboard.domain.dataset import Example
from onboard.domain.job import JobSpec
from onboard.pipeline import train as training
from onboard.probe.settings import FinalSettings, ProbeSettings
from onboard.train.settings import FewShotSettings


def learn_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs in this process train for two steps and publish no provisional version."""
    monkeypatch.setattr(JobSpec, "provisional", False)
    monkeypatch.setattr(training, "FewShotSettings", partial(FewShotSettings, steps=2, most_steps=2, batch=8))
    few = partial(ProbeSettings, finals=FinalSettings(steps=2))
    monkeypatch.setattr("onboard.pipeline.probe.ProbeSettings", few)
    monkeypatch.setattr("onboard.evaluate.baselines._logistic_regression", shares_of_labels)


def shares_of_labels(
    train: Sequence[Example], train_index: np.ndarray, rows: Sequence[Example], classes: int
) -> np.ndarray:
    """A learned baseline that learns nothing, (n, K): cross-validating a real one takes a fifth of a short job."""
    counts = np.bincount(train_index, minlength=classes) + 1.0
    return np.tile(counts / counts.sum(), (len(rows), 1))
