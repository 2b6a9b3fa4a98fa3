"""A readout of the rows that are labeled so far: labels without a row, one row, and no more than a fold of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.refusals import refused

from onboard.statistics.readout import FEWEST_JUDGING, FOLDS, fit_so_far

DRAW = np.random.default_rng(0)
TEXTS = DRAW.normal(size=(80, 12)) + 4 * np.eye(12)[DRAW.integers(3, size=80)]
NAMES = 3 * np.eye(12)[:3] + 0.1 * DRAW.normal(size=(3, 12))
KINDS = TEXTS[:, :3].argmax(1)


def right(rows: int, labels: int = 3) -> float:
    targets = np.eye(labels)[KINDS[:rows]]
    fitted = fit_so_far(TEXTS[:rows], targets, NAMES[:labels], TEXTS, 3)
    assert len(fitted.judged) == rows
    return float((fitted.readout.probabilities(TEXTS).argmax(1) == KINDS).mean())


@pytest.mark.parametrize("rows", [1, 2, FEWEST_JUDGING, FOLDS + 1, 60])
def test_any_number_of_rows_makes_a_readout(rows: int) -> None:
    assert right(rows) > 0.6
    assert right(60) > 0.9


def test_a_label_without_a_row_is_answered_by_its_word() -> None:
    first = np.flatnonzero(KINDS != 2)[:10]
    fitted = fit_so_far(TEXTS[first], np.eye(3)[KINDS[first]], NAMES, TEXTS, 3)
    likely = fitted.readout.probabilities(TEXTS)[:, 2]
    assert likely[KINDS == 2].mean() > 1.5 * likely[KINDS != 2].mean()


def test_a_prior_is_what_the_rows_are_drawn_towards() -> None:
    towards = 5 * np.eye(12)[[1, 2, 0]]
    drawn = fit_so_far(TEXTS[:1], np.eye(3)[KINDS[:1]], NAMES, TEXTS, 3, towards).readout.probabilities(TEXTS)
    plain = fit_so_far(TEXTS[:1], np.eye(3)[KINDS[:1]], NAMES, TEXTS, 3).readout.probabilities(TEXTS)
    assert (drawn.argmax(1) != plain.argmax(1)).mean() > 0.3


def test_too_few_texts_and_numbers_that_are_none_are_refused() -> None:
    with refused("readout-needs-two-texts"):
        fit_so_far(TEXTS[:1], np.eye(3)[KINDS[:1]], NAMES, TEXTS[:1], 3)
    with refused("features-not-finite"):
        fit_so_far(TEXTS[:2] * np.nan, np.eye(3)[KINDS[:2]], NAMES, TEXTS, 3)
