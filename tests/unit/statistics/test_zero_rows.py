"""A readout without labeled rows: what the words of the labels and a prior make of it."""

from __future__ import annotations

import numpy as np
import pytest
from support.refusals import refused

from onboard.statistics.prior import Lesson, fit_prior, names_on_scale
from onboard.statistics.zero_rows import readout_of_names

WIDTH, LABELS, TEXTS = 8, 3, 40


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def names(numbers: np.random.Generator) -> np.ndarray:
    return numbers.normal(size=(LABELS, 3 * WIDTH))


def texts_like(names: np.ndarray, numbers: np.random.Generator, blocks: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Texts around a middle far from zero, each on the side of its label's words; and the label of each."""
    truth = np.arange(TEXTS) % LABELS
    texts = 5.0 + numbers.normal(size=(TEXTS, blocks * WIDTH))
    texts[:, : 3 * WIDTH] += 2.0 * names[truth]
    return texts, truth


@pytest.mark.parametrize("blocks", [3, 6])
def test_texts_get_the_label_whose_words_they_are_like(
    names: np.ndarray, numbers: np.random.Generator, blocks: int
) -> None:
    texts, truth = texts_like(names, numbers, blocks)
    readout = readout_of_names(names, texts, blocks)
    assert readout.weights.shape == (LABELS, blocks * WIDTH)
    assert (readout.probabilities(texts).argmax(1) == truth).mean() > 0.9


def test_the_middle_of_the_texts_is_answered_with_equal_probabilities(
    names: np.ndarray, numbers: np.random.Generator
) -> None:
    texts, _ = texts_like(names, numbers)
    roots = np.sqrt(np.abs(texts)) * np.sign(texts)
    middle = roots.mean(0)
    middle = np.sign(middle) * middle**2  # whose root is the mean of the roots
    probabilities = readout_of_names(names, texts, 3).probabilities(middle[None])
    assert probabilities == pytest.approx(1 / LABELS, abs=2e-3)


def test_a_prior_turns_words_into_the_weights_that_it_learned(names: np.ndarray, numbers: np.random.Generator) -> None:
    texts, _ = texts_like(names, numbers)
    weights = 20.0 * numbers.normal(size=(LABELS, 3 * WIDTH))
    lesson = Lesson(names_on_scale(names), (weights - weights.mean(0)).astype(np.float16), 10_000)
    prior = fit_prior({"earlier": lesson})
    assert prior is not None
    alone, drawn = readout_of_names(names, texts, 3), readout_of_names(names, texts, 3, prior)
    taught = ((np.sqrt(np.abs(texts)) * np.sign(texts)) @ (weights / np.std(texts, 0).mean()).T).argmax(1)
    agreeing = [(readout.probabilities(texts).argmax(1) == taught).mean() for readout in (alone, drawn)]
    assert agreeing[1] > agreeing[0] + 0.2


def test_a_label_that_is_described_like_a_text_gets_it(names: np.ndarray, numbers: np.random.Generator) -> None:
    texts, truth = texts_like(names, numbers)
    silent = names.copy()
    silent[0] = names[1]  # two labels of the same words
    assert (readout_of_names(silent, texts, 3).probabilities(texts).argmax(1) == truth).mean() < 0.8
    described = silent.copy()
    described[0] = (silent[0] + names[0]) / 2
    assert (readout_of_names(described, texts, 3).probabilities(texts).argmax(1) == truth).mean() > 0.85


def test_what_makes_no_readout_is_refused(names: np.ndarray, numbers: np.random.Generator) -> None:
    texts, _ = texts_like(names, numbers)
    broken = texts.copy()
    broken[3, 3] = np.nan
    with refused("features-not-finite"):
        readout_of_names(names, broken, 3)
    with refused("features-not-finite"):
        readout_of_names(np.full_like(names, np.inf), texts, 3)
    with refused("readout-needs-two-texts"):
        readout_of_names(names, texts[:1], 3)
    other = fit_prior({"earlier": Lesson(names_on_scale(names), np.ones((LABELS, 5), dtype=np.float16), 9)})
    with refused("prior-width-differs"):
        readout_of_names(names, texts, 3, other)


def test_labels_of_the_same_words_are_answered_alike(numbers: np.random.Generator) -> None:
    names = np.tile(numbers.normal(size=(1, 3 * WIDTH)), (LABELS, 1))
    texts = numbers.normal(size=(TEXTS, 3 * WIDTH))
    assert readout_of_names(names, texts, 3).probabilities(texts) == pytest.approx(1 / LABELS)
