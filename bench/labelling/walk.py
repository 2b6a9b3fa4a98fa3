"""Labels the texts of a task round by round, in one order, and measures every readout on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.harness.as_if_new import drawn_tests
from bench.heldout.features import Features
from bench.labelling.orders import Pool, taken
from bench.labelling.plan import POOL, ROUND, SHOWN, TEST_ROWS
from onboard.data.splits import split_rank
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example, class_indices, example_key
from onboard.statistics.blocks import lengths_of_blocks
from onboard.statistics.prior import NAME_BLOCKS, Prior
from onboard.statistics.readout import Readout, fit_so_far, signed_roots
from onboard.statistics.zero_rows import readout_of_names


@dataclass(frozen=True)
class Texts:
    """The texts of a task, as the encoder reads them.

    Args:
        pool, test: features (n, 3h) and (m, 3h).
        truth: of the pool, the place of each label (n,).
        test_truth: of the test rows (m,).
        names: features (K, 3h) of the labels' words.
    """

    pool: np.ndarray
    truth: np.ndarray
    test: np.ndarray
    test_truth: np.ndarray
    names: np.ndarray


def texts_of(name: str, whole: Dataset, draw: int, features: Features) -> Texts:
    """A pool of the task's training rows, and the test rows that every draw takes."""
    rows = sorted(whole.train, key=lambda row: split_rank(draw, example_key(row)))[:POOL]
    test = drawn_tests(whole, TEST_ROWS)
    words = [Example(words_of(label), None, label) for label in whole.labels]
    return Texts(
        features.of(name, rows), np.array(class_indices(whole.labels, rows)),
        features.of(name, test), np.array(class_indices(whole.labels, test)), features.of(name, words),
    )  # fmt: skip


def accuracies(texts: Texts, order: str, prior: Prior | None, draw: int) -> Mapping[int, float]:
    """Accuracy in points on the test rows, by the number of labels."""
    roots = signed_roots(texts.pool)
    centred = roots - roots.mean(0)
    seen = centred / lengths_of_blocks(centred, NAME_BLOCKS)
    random, labelled, found = np.random.default_rng(draw), list[int](), dict[int, float]()
    while True:
        readout = _readout(texts, labelled, prior)
        if len(labelled) in SHOWN:
            right = readout.probabilities(texts.test).argmax(1) == texts.test_truth
            found[len(labelled)] = round(100 * float(right.mean()), 2)
        if len(labelled) >= SHOWN[-1]:
            return found
        pool = Pool(seen, readout.probabilities(texts.pool), labelled, random)
        labelled += taken(order, pool, ROUND)


def _readout(texts: Texts, labelled: Sequence[int], prior: Prior | None) -> Readout:
    if not labelled:
        return readout_of_names(texts.names, texts.pool, NAME_BLOCKS, prior)
    places = list(labelled)
    targets = np.eye(len(texts.names))[texts.truth[places]]
    return fit_so_far(texts.pool[places], targets, texts.names, texts.pool, NAME_BLOCKS, prior).readout
