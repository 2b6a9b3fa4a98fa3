"""The one-to-one mapping of a candidate's label words to the new task's labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.probe.mapping import best_words, word_pool, words_without

OWN = ("yes", "no")
THEIRS = ("good", "bad")
POOL = (*OWN, *THEIRS)


def one_hot(labels: Sequence[int], count: int = 2) -> np.ndarray:
    return np.eye(count, dtype=np.float32)[list(labels)]


def log_softmax(scores: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return normalised


def likelihood(scores: np.ndarray, targets: np.ndarray, pool: Sequence[str], words: Sequence[str]) -> float:
    columns = [list(pool).index(word) for word in words]
    return float((targets * scores[:, columns]).sum())


def test_the_words_that_the_rows_speak_for_are_chosen_whatever_their_order_among_the_candidates() -> None:
    labels = [0, 1, 0, 1, 1]
    scores = np.full((5, 4), -5.0)
    for row, label in enumerate(labels):
        scores[row, 3 if label == 0 else 2] = -0.1  # "bad" for the first label, "good" for the second
    assert best_words(scores, one_hot(labels), POOL, THEIRS) == ("bad", "good")
    swapped = [0, 1, 3, 2]
    pool = tuple(POOL[index] for index in swapped)
    assert best_words(scores[:, swapped], one_hot(labels), pool, THEIRS[::-1]) == ("bad", "good")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(1, 4), st.integers(1, 12))
def test_the_mapping_is_the_best_of_all_that_are_allowed(seed: int, own: int, theirs: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    scores = log_softmax(rng.normal(size=(rows, own + theirs)) * 2)
    targets = one_hot(rng.integers(0, own, rows).tolist(), own)
    mine = [f"own {index}" for index in range(own)]
    others = [f"theirs {index}" for index in range(theirs)]
    pool = (*mine, *others)
    mapped = best_words(scores, targets, pool, others)
    allowed = (
        words
        for words in itertools.product(*([mine[label], *others] for label in range(own)))
        if len(set(words)) == own
    )
    best = max(likelihood(scores, targets, pool, words) for words in allowed)
    assert likelihood(scores, targets, pool, mapped) == pytest.approx(best, abs=1e-3)
    assert len(set(mapped)) == own
    for label, word in enumerate(mapped):
        assert word == mine[label] or word in others


def test_a_label_never_takes_another_labels_own_word() -> None:
    labels = [0, 0, 1, 1]
    scores = np.full((4, 4), -8.0)
    scores[:2, 1] = scores[2:, 0] = -0.01  # each label's rows shout the other's own word
    scores[:, 2] = -4.0
    words = best_words(scores, one_hot(labels), POOL, THEIRS)
    assert words[0] != "no"
    assert words[1] != "yes"


def test_a_word_that_both_have_may_be_swapped_for_the_candidates_polarity_decides() -> None:
    labels = [0, 0, 1, 1]
    scores = np.full((4, 2), -8.0)
    scores[:2, 1] = scores[2:, 0] = -0.01
    assert best_words(scores, one_hot(labels), OWN, OWN) == ("no", "yes")


def test_the_order_of_the_rows_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    scores, labels = log_softmax(rng.normal(size=(40, 4))), rng.integers(0, 2, 40)
    words = best_words(scores, one_hot(labels.tolist()), POOL, THEIRS)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(40)
        assert best_words(scores[order], one_hot(labels[order].tolist()), POOL, THEIRS) == words


def test_one_row_of_hopeless_likelihood_does_not_decide_alone() -> None:
    labels = [0] * 9 + [1]
    scores = np.full((10, 4), -6.0)
    scores[:9, 2], scores[:9, 0] = -0.1, -5.0  # nine rows want "good" for the first label
    scores[9] = -1e9
    scores[9, 2] = -0.1  # one wants it for the second
    assert best_words(scores, one_hot(labels), POOL, THEIRS)[0] == "good"


def test_a_tie_goes_to_the_tasks_own_words() -> None:
    scores = np.full((6, 4), np.log(0.25))
    assert best_words(scores, one_hot([0, 1, 0, 1, 0, 1]), POOL, THEIRS) == OWN


def test_a_label_without_rows_keeps_its_own_word() -> None:
    scores = np.full((3, 4), -5.0)
    scores[:, 2] = -0.1
    assert best_words(scores, one_hot([0, 0, 0]), POOL, THEIRS) == ("good", "no")


def test_the_pool_starts_with_the_own_words_and_holds_no_two_of_the_same_tokens() -> None:
    def tokens(word: str) -> list[int]:
        return [ord(letter) for letter in word.lower()]

    assert word_pool(("yes", "no"), ("No", "maybe", "MAYBE", "yes"), tokens) == ("yes", "no", "maybe")


@pytest.mark.parametrize("rows", [1, 2, 8, 13])
def test_no_row_has_a_say_in_the_words_that_it_is_scored_with(rows: int) -> None:
    rng = np.random.default_rng(rows)
    scores, targets = log_softmax(rng.normal(size=(rows, 4))), one_hot(rng.integers(0, 2, rows).tolist())
    seen = np.zeros(rows, dtype=int)
    for held, words in words_without(np.arange(rows), scores, targets, POOL, THEIRS):
        seen += held
        for label in range(2):  # whatever the held rows say, and whatever they are called
            other = np.where(held[:, None], log_softmax(rng.normal(size=(rows, 4))), scores)
            called = np.where(held[:, None], one_hot([label])[[0] * rows], targets)
            assert best_words(other[~held], called[~held], POOL, THEIRS) == words
            again = {
                chosen
                for out, chosen in words_without(np.arange(rows), other, called, POOL, THEIRS)
                if (out == held).all()
            }
            assert again == {words}
    assert (seen == 1).all()
