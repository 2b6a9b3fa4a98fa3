"""What judges a tuning is what would be published: the embedding with its readout."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.pipeline.evidence import ReadoutEvidence
from onboard.train.crossvalidation import log_of, mean_loss
from onboard.train.step_length import LossByShare

TARGETS = np.eye(2)[np.arange(40) % 2]
SURE, UNSURE, WRONG = 0.9 * TARGETS + 0.05, np.full((40, 2), 0.5), 0.9 * TARGETS[:, ::-1] + 0.05


def test_without_a_readout_the_embedding_is_judged_as_it_is() -> None:
    scores = log_of(SURE).astype(np.float32)
    assert ReadoutEvidence(None, TARGETS, 0.0).published(scores) is scores
    assert ReadoutEvidence(None, TARGETS, 0.0).loss(scores) == mean_loss(scores, TARGETS)


def test_a_readout_that_does_not_pay_has_no_say() -> None:
    assert ReadoutEvidence(WRONG, TARGETS, 0.7).loss(log_of(SURE)) == pytest.approx(mean_loss(log_of(SURE), TARGETS))


def test_with_a_good_readout_a_step_that_helps_the_embedding_alone_brings_nothing() -> None:
    half_right = np.where(np.arange(40)[:, None] < 20, SURE, UNSURE)
    readout = np.where(np.arange(40)[:, None] < 20, SURE, 0.4 * TARGETS + 0.3)  # knows what the step would teach
    before, after = log_of(UNSURE), log_of(half_right)
    alone = LossByShare.of(before, dict.fromkeys((1.0, 0.5, 0.25, 0.125), after), TARGETS)
    assert alone.wanted(at_all=False) == 1.0
    beside = ReadoutEvidence(readout, TARGETS, 0.7)
    gained = beside.loss(before) - beside.loss(after)
    assert gained < 0.1 * (alone.alone - alone.least)
