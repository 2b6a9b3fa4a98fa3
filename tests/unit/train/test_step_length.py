"""How much of a step the new task wants, and how rows are answered by tunings that have not seen them."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.interpolate import between
from onboard.model.protected import Protection
from onboard.train.crossvalidation import IN_NONE, in_a_fold
from onboard.train.settings import TuningSettings
from onboard.train.step_length import LossByShare, tuned_out_of_fold
from onboard.train.tuning import Tuned, tune

FOLD = np.array([1, 0, 2, 2, 1, 0, 1, 0])
STARTS = np.random.default_rng(5).standard_normal((3, 16)).astype(np.float32)
SETTINGS = TuningSettings(steps=2, most_steps=2, batch=4, learning_rate=1e-2, z_learning_rate=0.1)


def test_a_row_is_answered_after_each_share_of_a_step_that_was_taken_without_it(
    tiny_engine: Engine, rows: LabelledRows
) -> None:
    trie, seen, tunings = tiny_engine.trie(["good", "bad"]), list[list[list[int]]](), list[Tuned]()

    def tuned_on(z: np.ndarray, rest: LabelledRows) -> Tuned:
        seen.append([list(ids) for ids in rest.ids])
        tunings.append(tune(tiny_engine, TrainingSet(rest, trie), z, Protection(), SETTINGS, 0))
        return tunings[-1]

    by_share = tuned_out_of_fold(tiny_engine, TrainingSet(rows, trie), STARTS, FOLD, [1.0, 0.5, 0.0], tuned_on)
    assert len(tunings) == 3, "every share is of the same tunings"
    for row, number in enumerate(FOLD):
        own = list(rows.ids[row])
        assert own not in seen[number]
        assert all(own in trained for fold, trained in enumerate(seen) if fold != number)
        tuned, start = tunings[number], STARTS[number]
        for share, scores in by_share.items():
            engine = tiny_engine.under(between(tiny_engine.hypernetwork, tuned.hypernetwork, share))
            expected = log_probabilities(engine, [own], start + np.float32(share) * (tuned.z - start), trie)[0]
            np.testing.assert_allclose(scores[row], expected, atol=1e-5)
    alone = [log_probabilities(tiny_engine, [rows.ids[row]], STARTS[FOLD[row]], trie)[0] for row in range(len(FOLD))]
    assert [np.allclose(by_share[share], alone, atol=1e-5) for share in (0.0, 0.5, 1.0)] == [True, False, False]


def test_a_row_of_no_fold_is_tuned_on_by_all_and_answered_by_none(tiny_engine: Engine, rows: LabelledRows) -> None:
    seen, fold = list[list[list[int]]](), FOLD.copy()
    fold[[2, 5]] = IN_NONE

    def tuned_on(z: np.ndarray, rest: LabelledRows) -> Tuned:
        seen.append([list(ids) for ids in rest.ids])
        return Tuned(tiny_engine.hypernetwork, z, (), (), 0.0)

    trie = tiny_engine.trie(["good", "bad"])
    scores = tuned_out_of_fold(tiny_engine, TrainingSet(rows, trie), STARTS, fold, [1.0], tuned_on)[1.0]
    assert all(list(rows.ids[row]) in trained for trained in seen for row in (2, 5))
    expected = [log_probabilities(tiny_engine, [rows.ids[row]], STARTS[fold[row]], trie)[0] for row in in_a_fold(fold)]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("losses", "alone", "at_all", "share"),
    [
        ((0.4, 0.5, 0.6, 0.7), 0.8, False, 1.0),
        ((0.6, 0.4, 0.5, 0.6), 0.5, False, 0.5),
        ((0.9, 0.8, 0.7, 0.6), 0.5, False, 0.0),
        ((0.9, 0.8, 0.7, 0.6), 0.5, True, 0.125),
        ((0.6, 0.6, 0.6, 0.6), 0.5, True, 0.125),
        ((0.4, 0.4, 0.6, 0.6), 0.5, True, 1.0),
        ((0.5, 0.5, 0.5, 0.5), 0.5, False, 0.0),
        ((0.419, 0.4, 0.5, 0.5), 0.5, False, 1.0),
        ((0.421, 0.4, 0.5, 0.5), 0.5, False, 0.5),
        ((0.419, 0.4, 0.5, 0.5), 0.41, False, 0.5),
    ],
)
def test_the_new_task_wants_the_most_of_the_step_that_is_nearly_best_and_none_where_the_embedding_alone_is_as_good(
    losses: tuple[float, ...], alone: float, at_all: bool, share: float
) -> None:
    losses_by_share = LossByShare(alone, dict(zip((1.0, 0.5, 0.25, 0.125), losses, strict=True)))
    assert losses_by_share.wanted(at_all=at_all) == share
    assert losses_by_share.to_json() == dict(zip(("0", "1", "0.5", "0.25", "0.125"), (alone, *losses), strict=True))


def test_targets_stay_with_their_rows(tiny_engine: Engine, rows: LabelledRows) -> None:
    trie = tiny_engine.trie(["good", "bad"])
    of = {tuple(ids): target.tolist() for ids, target in zip(rows.ids, rows.targets, strict=True)}

    def tuned_on(z: np.ndarray, rest: LabelledRows) -> Tuned:
        assert [of[tuple(ids)] for ids in rest.ids] == rest.targets.tolist()
        return Tuned(tiny_engine.hypernetwork, z, (0.5,), (0.0,), 0.0)

    tuned_out_of_fold(tiny_engine, TrainingSet(rows, trie), STARTS, FOLD, [1.0], tuned_on)
