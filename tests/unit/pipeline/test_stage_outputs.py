"""What stages leave, as it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onboard.contract.guard import Tuning
from onboard.contract.report import TrainingStart
from onboard.pipeline.outputs import NoStep, ProbeOutput, ProposedStep, tune_output

Z = np.array([0.1, -2.5], dtype=np.float32)
PROBED = ProbeOutput(Z, ("no", "yes"), "AAAA", TrainingStart(chosen="mean"), np.array([-(2**62), 7]), {"loss": 0.5})
STEP = ProposedStep(Z, "sha256:0", {"0.5": np.array([[0.25, 0.75]])}, {"0": 0.7}, Tuning(tried=True), {"loss": 0.5})


def again(document: dict[str, Any]) -> dict[str, Any]:
    """As it is read back from its artifact."""
    read: dict[str, Any] = json.loads(json.dumps(document))
    return read


def test_numbers_are_read_to_the_bit() -> None:
    probed, step = ProbeOutput.from_json(again(PROBED.to_json())), tune_output(again(STEP.to_json()))
    assert isinstance(step, ProposedStep)
    for z in (probed.z, step.z):
        assert (z.dtype, z.tobytes()) == (np.float32, Z.tobytes())
    assert (probed.words, probed.known.tolist()) == (PROBED.words, PROBED.known.tolist())
    assert step.folds is not None
    assert step.folds["0.5"].tolist() == [[0.25, 0.75]]
    assert (probed.to_json(), step.to_json()) == (PROBED.to_json(), STEP.to_json())


def test_a_tuning_leaves_a_step_or_none() -> None:
    none = NoStep(None, diverged=True, tuning=Tuning(tried=True), numbers={"tuned": False})
    assert tune_output(again(none.to_json())) == none


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("words"), lambda document: document.pop("init"),
        lambda document: document.update(more=1), lambda document: document.update(z="0.1"),
        lambda document: document.update(known=None, words=None),
    ],
)  # fmt: skip
def test_what_is_missing_or_odd_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    document = again(PROBED.to_json())
    change(document)
    with pytest.raises((KeyError, TypeError, ValueError)):
        ProbeOutput.from_json(document)
