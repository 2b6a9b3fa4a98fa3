"""The rule of `--method auto`: when no further method is tried, and which of those tried is published."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.domain.methods import LINEAR, OWN_WEIGHTS, SMALL
from onboard.model.methods import TASK_METHODS
from onboard.train.method_choice import Tried, cheapest, least, nothing_to_gain

ROWS = np.linspace(0.2, 1.8, 32)
WAVES = np.tile([0.3, -0.3], 16)  # of mean 0: a standard error of 0.054 on 32 rows


def tried(method: str, losses: np.ndarray, size: int, accuracy: float | None = 0.5) -> Tried:
    return Tried(method, losses, accuracy, size)


DEFAULT, READOUT = tried("hyperformer++", ROWS, 2_500), tried(LINEAR, ROWS + 0.4, 2_300)


def test_what_is_tried_are_methods_that_there_are_smallest_first() -> None:
    assert set(SMALL) <= set(OWN_WEIGHTS)
    assert all(TASK_METHODS[method].MIXES for method in SMALL)


def test_the_cheapest_within_a_quarter_of_a_standard_error_of_the_best_is_taken() -> None:
    best = tried(SMALL[0], ROWS - 0.2 + WAVES, 100_000)
    close = tried("hyperformer++", ROWS - 0.19, 2_500)
    choice = cheapest([close, READOUT, best])
    assert choice.method == "hyperformer++"
    assert choice.reason == (
        f"{SMALL[0]} has the lowest loss, 0.800 nats; hyperformer++ is 0.010 behind it, within a quarter of a standard "
        "error (0.013), and takes 2,500 bytes instead of 100,000."
    )
    choice = cheapest([tried("hyperformer++", ROWS - 0.185, 2_500), READOUT, best])
    assert choice.method == SMALL[0]
    assert choice.reason.endswith("no clearly smaller one is within a quarter of a standard error of it.")


def test_a_tenth_fewer_bytes_are_worth_no_loss() -> None:
    """The default is a readout and 64 numbers: about as cheap as the readout alone."""
    default = tried("hyperformer++", ROWS - 0.01 + WAVES, 2_500)
    assert cheapest([default, tried(LINEAR, ROWS, 2_274)]).method == "hyperformer++"
    assert cheapest([default, tried(LINEAR, ROWS, 2_272)]).method == LINEAR
    assert cheapest([default, tried(LINEAR, ROWS - 0.02, 2_274)]).method == LINEAR


def test_the_same_rows_are_compared_not_the_spread_of_the_rows() -> None:
    """The losses differ by 0.1 on every row, and from row to row by more."""
    assert cheapest([tried(LINEAR, ROWS + 0.1, 10), tried("compacter", ROWS, 20)]).method == "compacter"


def test_of_equal_losses_the_one_of_fewer_bytes_is_least() -> None:
    assert least([tried("compacter", ROWS, 20), tried(LINEAR, ROWS, 10)]).method == LINEAR
    assert cheapest([DEFAULT]).reason == "hyperformer++ has the lowest loss, 1.000 nats."


@pytest.mark.parametrize(
    ("so_far", "said"),
    [
        ([DEFAULT, READOUT], None),
        ([tried("hyperformer++", ROWS[:12], 9)], "12 rows are too few to tell whether another method is better."),
        ([tried("hyperformer++", ROWS, 9, 0.9), READOUT], "hyperformer++ gets 90% of 32 rows right, so there is"),
        ([DEFAULT, READOUT, tried(SMALL[0], ROWS - 0.1, 99)], None),
        ([tried("hyperformer++", ROWS, 9, None)], None),  # numbers have no accuracy
    ],
)
def test_a_further_method_is_tried_where_rows_say_that_there_is_something_to_gain(
    so_far: list[Tried], said: str | None
) -> None:
    stopped = nothing_to_gain(so_far)
    assert stopped is None if said is None else (stopped or "").startswith(said)
