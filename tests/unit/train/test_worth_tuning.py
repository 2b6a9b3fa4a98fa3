"""The rule of `--tune-hypernetwork auto`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from onboard.train.worth_tuning import MOST_FITTED, EmbeddingAlone, fitted, worth_tuning

GOOD_START = EmbeddingAlone(accuracy=0.75, rows=32, majority=0.5, tfidf=0.6, training_loss=lambda: 0.3, labels=2)


def test_an_embedding_that_beats_both_baselines_is_left_alone() -> None:
    worth = worth_tuning(GOOD_START)
    assert not worth.tune
    assert "75% of 32 rows" in worth.reason


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tfidf": 0.75}, "TF-IDF 75%"),
        ({"tfidf": None, "majority": 0.8}, "the most frequent label 80%"),
    ],
)
def test_one_that_is_no_better_than_a_baseline_is_tuned(change: dict[str, Any], why: str) -> None:
    worth = worth_tuning(replace(GOOD_START, **change))
    assert worth.tune
    assert why in worth.reason


@pytest.mark.parametrize(
    "change",
    [
        {"accuracy": None},
        {"rows": 15},
        {"accuracy": 0.9, "tfidf": 0.95},
        {"training_loss": lambda: 0.04 * math.log(2)},
    ],
)
def test_nothing_is_tuned_without_evidence_or_without_room_whatever_else_holds(change: dict[str, Any]) -> None:
    leaving_room = replace(GOOD_START, tfidf=0.85)
    assert worth_tuning(leaving_room).tune
    assert not worth_tuning(replace(leaving_room, **change)).tune


def test_what_is_known_by_heart_is_judged_by_the_number_of_labels() -> None:
    asking = replace(GOOD_START, tfidf=0.8, training_loss=lambda: 0.06)
    assert worth_tuning(asking).tune
    assert not worth_tuning(replace(asking, labels=20)).tune


@pytest.mark.parametrize("change", [{"accuracy": None}, {"rows": 15}, {"accuracy": 0.9}])
def test_the_training_rows_are_not_measured_where_something_cheaper_decides(change: dict[str, Any]) -> None:
    def measure() -> float:
        pytest.fail("the training rows were measured")

    assert not worth_tuning(replace(GOOD_START, training_loss=measure, **change)).tune


def test_many_training_rows_are_measured_by_a_fair_part_of_them() -> None:
    assert fitted(MOST_FITTED) == list(range(2048))
    places = fitted(4 * MOST_FITTED)
    assert (len(places), places[:2], places[-1]) == (2048, [0, 4], 4 * 2047)
