"""The race: who leaves when, who never leaves, and on which rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onboard.probe.racing import Raced, race, ranking
from onboard.probe.settings import RaceSettings
from onboard.statistics.student import paired
from tests.unit.probe.fake_evaluator import faked

ROWS = 64
ORDER = np.random.default_rng(7).permutation(ROWS)


def losses_of(levels: list[float], noise: float = 0.02) -> dict[str, np.ndarray]:
    """Losses of a candidate a level: rows differ by far more than candidates do."""
    rng = np.random.default_rng(0)
    difficulty = rng.uniform(0.0, 3.0, ROWS)
    return {f"t{index}@v1": difficulty + level + rng.normal(0, noise, ROWS) for index, level in enumerate(levels)}


def round_of(raced: Raced) -> dict[str, int]:
    return {score.embedding: score.round for score in raced.scores}


def test_a_clearly_worse_candidate_leaves_in_the_first_round() -> None:
    _, evaluator, candidates = faked(losses_of([0.0, 0.0, 0.0, 1.0]))
    raced = race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=2))
    assert round_of(raced)["t3@v1"] == 1
    assert {score.rows for score in raced.scores if score.embedding == "t3@v1"} == {8}


def test_of_the_better_half_only_what_the_rows_cannot_tell_from_the_leader_stays() -> None:
    alike = faked(losses_of([0.0, 0.001, 1.0, 1.0], noise=0.3))
    other = faked(losses_of([0.0, 1.0, 2.0, 2.0], noise=0.3))
    for (fake, evaluator, candidates), staying in ((alike, 2), (other, 1)):
        race(evaluator, candidates, ORDER, RaceSettings(first_rows=16, finalists=1))
        assert [len(names) for names, _ in fake.asked][:2] == [4, staying]


def test_never_more_than_half_stay_beyond_the_finalists() -> None:
    fake, evaluator, candidates = faked(losses_of([0.0] * 16, noise=0.5))
    race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=2, margin=100.0))
    assert [len(names) for names, _ in fake.asked] == [16, 8, 4, 2]


def test_as_many_as_are_finalists_stay_to_the_end_however_bad_they_are() -> None:
    _, evaluator, candidates = faked(losses_of([0.0, 1.0, 2.0, 3.0, 4.0]))
    raced = race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=3))
    assert [candidate.embedding for candidate in raced.standing] == ["t0@v1", "t1@v1", "t2@v1"]
    assert raced.losses.shape == (3, ROWS)


def test_those_that_are_spared_are_measured_on_all_rows() -> None:
    _, evaluator, candidates = faked(losses_of([0.0, 1.0, 2.0, 3.0]))
    raced = race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=1), spared={"t3@v1"})
    assert [candidate.embedding for candidate in raced.standing] == ["t0@v1", "t3@v1"]
    assert [score.rows for score in raced.scores if score.embedding == "t3@v1"] == [ROWS]


def test_the_rows_of_a_round_are_those_of_the_round_before_and_as_many_more() -> None:
    fake, evaluator, candidates = faked(losses_of([0.0, 0.1, 0.2]))
    race(evaluator, candidates, ORDER[:50], RaceSettings(first_rows=8))
    rounds = [rows for _, rows in fake.asked]
    assert [len(rows) for rows in rounds] == [8, 16, 32, 50]
    for earlier, later in pairwise(rounds):
        assert later[: len(earlier)] == earlier
    assert rounds[-1] == tuple(ORDER[:50].tolist())


def test_later_rounds_stand_before_earlier_ones_whatever_their_loss() -> None:
    losses = losses_of([0.0, 0.0, 3.0, 3.0])
    losses["t3@v1"][ORDER[8:]] = -9.0  # what it would have had on rows that it never came to
    _, evaluator, candidates = faked(losses)
    raced = race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=2))
    assert [score.round for score in raced.scores] == [4, 4, 1, 1]


def test_one_that_knows_the_rows_of_a_round_goes_on_and_is_compared_on_the_others() -> None:
    losses = losses_of([0.5, 0.6, 0.0, 0.7])
    losses["t2@v1"][ORDER[:12]] = np.nan
    _, evaluator, candidates = faked(losses)
    raced = race(evaluator, candidates, ORDER, RaceSettings(first_rows=8, finalists=1))
    assert raced.standing[0].embedding == "t2@v1"


def test_easy_rows_that_only_one_is_measured_on_do_not_make_it_better() -> None:
    losses = np.array([[5.0, 5.0, 1.0, 1.0], [np.nan, np.nan, 1.2, 1.2]])  # the second knows the hard rows
    _, _, candidates = faked({"a@v1": losses[0], "b@v1": losses[1]})
    assert ranking(candidates, losses) == [0, 1]


def test_one_is_not_better_for_having_bad_company_on_the_rows_that_it_was_measured_on() -> None:
    difficulty = np.random.default_rng(1).uniform(0.0, 3.0, ROWS)
    losses = np.stack([difficulty + level for level in (0.0, 0.05, 1.0)])  # source@v1, own@v2, own@v1
    losses[1:, : ROWS // 2] = np.nan  # its task's versions know half of the rows, and one of them is bad
    _, _, candidates = faked(dict(zip("abc", losses, strict=True)))
    assert ranking(candidates, losses) == [0, 1, 2]
    assert ranking(candidates, losses, surely=False) == [0, 1, 2]


def test_what_four_rows_say_by_chance_does_not_win() -> None:
    rng, won, by_means = np.random.default_rng(2), 0, 0
    for _ in range(100):
        losses = rng.uniform(0.0, 3.0, ROWS) + rng.normal(0.0, 0.3, (6, ROWS))
        losses[0] -= 0.1
        losses[1:, 4:] = np.nan
        _, _, candidates = faked(dict(zip("abcdef", losses, strict=True)))
        won += ranking(candidates, losses)[0] != 0
        by_means += ranking(candidates, losses, surely=False)[0] != 0
    assert won <= 15 < 30 <= by_means


def test_a_version_of_the_task_itself_wins_by_the_few_rows_that_are_new_to_it() -> None:
    rng = np.random.default_rng(3)
    losses = rng.uniform(0.0, 3.0, ROWS) + rng.normal(0.0, 0.1, (3, ROWS))
    losses[2] -= 0.5
    losses[2, 8:] = np.nan
    _, _, candidates = faked(dict(zip("abc", losses, strict=True)))
    assert ranking(candidates, losses)[0] == 2


def test_one_that_knows_nearly_all_rows_does_not_take_part() -> None:
    losses = losses_of([0.0, 1.0])
    losses["t0@v1"][ORDER[3:]] = np.nan
    _, evaluator, candidates = faked(losses)
    raced = race(evaluator, candidates, ORDER, RaceSettings())
    assert [score.embedding for score in raced.scores] == ["t1@v1"]
    with pytest.raises(ValueError, match="measured"):
        race(evaluator, candidates[:1], ORDER, RaceSettings())


def test_the_order_of_the_candidates_does_not_matter() -> None:
    losses = losses_of([0.3, 0.1, 0.1, 0.2, 0.0, 0.1], noise=0.3)
    _, evaluator, candidates = faked(losses)
    first = race(evaluator, candidates, ORDER, RaceSettings(finalists=2))
    second = race(evaluator, candidates[::-1], ORDER, RaceSettings(finalists=2))
    assert first.scores == second.scores
    np.testing.assert_array_equal(first.losses, second.losses)


def test_a_paired_difference_is_taken_on_the_rows_that_both_have() -> None:
    one, other = np.array([1.0, 2.0, np.nan, 4.0]), np.array([0.5, 1.0, 9.0, np.nan])
    mean, error = paired(one, other)
    assert mean == pytest.approx(0.75)
    assert error == pytest.approx(0.25)
    assert paired(one[:1], other[:1]) == (0.0, float("inf"))
