"""What more labelled rows would buy, and when that cannot be told."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.train.learning_curve import MORE_ROWS, MoreRows, more_rows

SHARES = {0.5: 0.6, 0.75: 0.7, 1.0: 0.77}  # accuracy by share: about 0.25 per unit of log rows

TARGETS = np.tile(np.eye(2), (32, 1))
SCORES = np.log(np.full((64, 2), 0.5))


def curve(count: int, accuracy: dict[float, float], spread: bool = True, there: int = 0) -> MoreRows:
    """Rows of which the first so many are right, dealt evenly to four folds."""
    targets = np.tile(np.eye(2), (count // 2, 1))
    order = np.random.default_rng(1).permutation(count) if spread else np.arange(count)
    scores = {}
    for share, right in accuracy.items():
        wrong = np.zeros(count, dtype=bool)
        wrong[order[round(right * count) :]] = True
        scores[share] = np.log(np.where(wrong[:, None], 1 - targets, targets) * 0.8 + 0.1)
    rows = {share: share * 0.75 * count for share in accuracy}
    return more_rows(scores, rows, targets, np.arange(count) % 4, there or count)


def test_a_curve_that_rises_goes_on_rising_with_the_logarithm_of_the_rows() -> None:
    more = curve(2000, SHARES)
    assert more.gain is not None
    gain, low, high = more.gain
    assert gain == pytest.approx(0.245 * np.log((2000 + MORE_ROWS) / 2000), rel=0.05)
    assert low < gain < high
    assert [rows for rows, _ in more.points] == [750, 1125, 1500]
    assert [accuracy for _, accuracy in more.points] == pytest.approx(list(SHARES.values()))


def test_fewer_rows_make_it_less_certain() -> None:
    widths = [gain[2] - gain[1] for count in (32, 64, 256) if (gain := curve(count, SHARES).gain)]
    assert len(widths) == 3
    assert widths[0] > widths[1] > widths[2]
    few = curve(16, SHARES)
    assert few.gain is None
    assert few.reason == "16 rows are too few to extrapolate from."


def test_rows_that_are_in_no_fold_make_32_more_of_them_worth_less() -> None:
    """Where the start was trained on half of 128 rows, folds predict the other half alone."""
    alone, among = curve(64, SHARES).gain, curve(64, SHARES, there=128).gain
    assert alone is not None
    assert among is not None
    assert among[0] == pytest.approx(alone[0] * np.log(160 / 128) / np.log(96 / 64))


def test_one_point_is_no_curve() -> None:
    assert curve(64, {1.0: 0.8}).reason == "Only one number of rows was trained on."
    half_knew_all = more_rows({0.5: SCORES, 1.0: SCORES}, {0.5: 48.0, 1.0: 48.0}, TARGETS, np.arange(64) % 4, 64)
    assert half_knew_all.reason == "Only one number of rows was trained on."


def test_nothing_gets_better_than_all_right() -> None:
    more = curve(128, {0.5: 0.9, 1.0: 0.99})
    assert more.gain is not None
    assert more.gain[0] <= 0.02
    assert more.gain[2] <= 0.02


@pytest.mark.parametrize("accuracies", [{0.5: 0.75, 1.0: 0.75}, {0.5: 0.7, 1.0: 0.75}, {0.5: 0.75, 1.0: 0.7}])
def test_rows_that_stay_right_or_wrong_tell_nothing(accuracies: dict[float, float]) -> None:
    """The bootstrap of a few changed rows would be sure of what it has not seen."""
    more = curve(64, accuracies)
    assert more.gain is None
    assert more.reason == "Too few answers changed between half of the rows and all of them."
    assert len(more.points) == 2


def test_where_all_was_right_no_gain_can_show() -> None:
    more = curve(64, {0.5: 0.8, 1.0: 1.0})
    assert more.gain is None
    assert more.reason is not None
    assert more.reason.startswith("All cross-validated answers are right")


def test_the_interval_is_no_narrower_than_a_row_on_either_side() -> None:
    """Where so few rows are half of them, the slope hardly varies with the rows that are drawn."""
    count = 64
    targets = np.tile(np.eye(2), (count // 2, 1))
    few, many = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
    few[:4], many[4:8] = False, False
    scores = {
        share: np.log(np.where(right[:, None], targets, 1 - targets) * 0.8 + 0.1)
        for share, right in ((0.5, few), (1.0, many))
    }
    more = more_rows(scores, {0.5: 1e-9, 1.0: 48.0}, targets, np.arange(count) % 4, count)  # hardly a slope
    assert more.gain is not None
    gain, low, high = more.gain
    assert low <= gain - 1 / count + 1e-9
    assert high >= gain + 1 / count - 1e-9


def test_the_document_names_everything() -> None:
    assert curve(64, SHARES).to_document().to_json().keys() == {
        "points",
        "more",
        "gain",
        "low",
        "high",
        "reason",
        "of_readout",
    }
    assert MoreRows([], reason="why").to_document().to_json() == {
        "points": [], "more": MORE_ROWS, "gain": None, "low": None, "high": None, "reason": "why", "of_readout": False,
    }  # fmt: skip


def test_without_time_for_fewer_rows_nothing_is_told() -> None:
    assert "too long" in str(more_rows({}, {0.5: 24.0, 1.0: 48.0}, TARGETS, np.arange(64) % 4, 64).reason)


def test_a_constant_answer_has_no_curve() -> None:
    """Half of the rows gave the rare label to every text, all of them the common one: 25% and 75% right."""
    targets = np.eye(2)[((np.arange(64) // 4) % 4 == 0).astype(np.int64)]
    common, rare = (np.log(np.tile(answer, (64, 1))) for answer in ([0.9, 0.1], [0.1, 0.9]))
    for first in (rare, np.log(np.abs(targets - 0.1))):
        more = more_rows({0.5: first, 1.0: common}, {0.5: 24.0, 1.0: 48.0}, targets, np.arange(64) % 4, 64)
        assert (more.gain, more.points) == (None, ())
        assert (
            more.reason
            == "Trained on 48 rows, the model gave every text the same answer, so the curve cannot be extrapolated."
        )


def test_folds_that_answer_all_alike_have_no_curve_though_they_differ() -> None:
    fold = np.arange(64) % 4
    targets = np.eye(2)[(np.arange(64) // 4) % 2]
    by_fold = np.log(np.where(fold[:, None] < 2, [0.9, 0.1], [0.1, 0.9]))
    more = more_rows({0.5: by_fold, 1.0: np.log(np.abs(targets - 0.1))}, {0.5: 24.0, 1.0: 48.0}, targets, fold, 64)
    assert more.points == ()
    assert more.reason is not None
    assert more.reason.startswith("Trained on 24 rows")
