"""Cross-validation of few rows: no row is predicted by an embedding that has trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.tiny_base import WORDS as VOCABULARY

from bench.harness.as_a_job import train_embedding
from onboard.data.label_errors import Doubt
from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.domain.dataset import Dataset, Example
from onboard.errors import CancelledError
from onboard.model import engine as engines
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.cost import Passes
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.model.memory import RowsAtOnce
from onboard.model.side_by_side import Moved, TrainingRun
from onboard.train import crossvalidation, fewshot, learning, learning_curve, step_length
from onboard.train.crossvalidation import part_rows
from onboard.train.halves import two_halves
from onboard.train.learning import Learned, Validation, learn
from onboard.train.settings import FEWEST_CURVE_ROWS, FOLDS, FewShotSettings

SIZE = 16
WORDS = VOCABULARY.split()[:20]
SETTINGS = FewShotSettings(steps=2, batch=4, seeds=1)
NEVER: dict[str, Any] = {"cross_validated": False}
START = np.random.default_rng(5).standard_normal(SIZE).astype(np.float32)


def dataset_of(count: int) -> Dataset:
    rows = tuple(Example(f"{WORDS[index]} film", None, ("a", "b")[index % 2]) for index in range(count))
    return Dataset("classification", ("a", "b"), rows)


def labelled(engine: Engine, dataset: Dataset) -> LabelledRows:
    ids = engine.encoder.encode([(row.text_a, None) for row in dataset.train])
    return LabelledRows(ids, np.eye(2, dtype=np.float32)[dataset.class_indices(dataset.train)])


def learned(
    engine: Engine, dataset: Dataset, settings: FewShotSettings = SETTINGS, *, seed: int = 0, **more: Any
) -> Learned:
    rows, trie = labelled(engine, dataset), engine.trie(["a", "b"])
    judged_by = {name: more.pop(name) for name in ("held", "known") if name in more}
    validation = Validation(dataset, more.pop("cross_validated", True), **judged_by)
    return learn(engine, TrainingSet(rows, trie), START, settings, seed, validation, Execution(**more))


def test_no_fold_trains_on_a_row_that_it_holds_out(tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    trained_on: list[set[int]] = []
    predicted: list[tuple[int, tuple[int, ...]]] = []

    def spy_train(engine: Engine, runs: Sequence[TrainingRun], *more: Any) -> list[Moved]:
        trained_on.extend(set(np.concatenate(run.batches).tolist()) for run in runs)
        return [
            Moved(np.full(SIZE, index, dtype=np.float32), (0.5,), np.zeros((1, SIZE))) for index in range(len(runs))
        ]

    def spy_predict(engine: Engine, ids: Sequence[Sequence[int]], generated: Any, *more: Any) -> np.ndarray:
        predicted.extend((int(z), tuple(row)) for z, row in zip(generated[more[1]], ids, strict=True))
        return np.full((len(ids), 2), float(np.log(0.5)))

    monkeypatch.setattr(fewshot, "train_side_by_side", spy_train)
    monkeypatch.setattr(crossvalidation, "mixed_log_probabilities", spy_predict)
    monkeypatch.setattr(tiny_engine, "hypernetwork", lambda z: z[:, 0].numpy())
    dataset = dataset_of(18)
    ids = [tuple(row) for row in labelled(tiny_engine, dataset).ids]
    assert len(set(ids)) == 18  # every row can be told apart
    learned(tiny_engine, dataset, FewShotSettings(steps=8, batch=4, seeds=1, curve=(0.5,)))
    assert len(trained_on) == 1 + 2 * FOLDS  # all rows, the folds, and a half of each fold
    assert trained_on[0] == set(range(18))
    predicted = [*predicted[:18], *predicted[-18:]]  # after the whole way, and on the halves; between: less of the way
    assert {run for run, _ in predicted} == set(range(1, 1 + 2 * FOLDS))
    for run, row in predicted:
        assert run > 0
        assert ids.index(row) not in trained_on[run]
    for fold in range(FOLDS):
        whole, half = trained_on[1 + fold], trained_on[1 + FOLDS + fold]
        assert half < whole
        assert len(half) == round(len(whole) / 2)


def test_every_row_gets_probabilities_that_sum_to_one_and_the_fold_that_made_them(tiny_engine: Engine) -> None:
    steps = list[int]()
    folds = learned(tiny_engine, dataset_of(10), on_step=lambda step, loss: steps.append(step)).folds
    assert folds is not None
    probabilities = np.exp(folds.scores)
    assert probabilities.shape == (10, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
    assert set(folds.fold.tolist()) == set(range(FOLDS))
    assert steps == [1, 2]  # all of them in one go


def test_a_fold_is_what_training_on_its_rows_alone_gives(tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "has_bfloat16", lambda: False)  # rounded, what is beside a row counts a little
    dataset = dataset_of(12)
    rows, trie = labelled(tiny_engine, dataset), tiny_engine.trie(["a", "b"])
    outcome = learned(tiny_engine, dataset)
    whole = train_embedding(tiny_engine, START, rows, trie, SETTINGS, 0)
    np.testing.assert_allclose(outcome.trained.z, whole.shortened(START, outcome.share).z, atol=1e-5)
    assert outcome.folds is not None
    for fold in part_rows(dataset, 0):
        part = LabelledRows([rows.ids[row] for row in fold.kept], rows.targets[fold.kept])
        alone = train_embedding(tiny_engine, START, part, trie, replace(SETTINGS, batch=3), 0)  # 9 rows of 12
        alone = alone.shortened(START, outcome.share)
        scores = log_probabilities(tiny_engine, [rows.ids[row] for row in fold.held], alone.z, trie)
        np.testing.assert_allclose(outcome.folds.scores[fold.held], scores, atol=1e-4)


def test_the_folds_and_their_shares_are_stratified() -> None:
    dataset = dataset_of(16)
    for fold in part_rows(dataset, 0, (0.5,)):
        for rows, count in ((fold.held, 2), (fold.kept, 6), (fold.shares[0.5], 3)):
            assert sorted(str(dataset.train[row].label) for row in rows) == ["a"] * count + ["b"] * count


def test_too_few_rows_have_no_estimate(tiny_engine: Engine) -> None:
    for count, estimated in ((FEWEST_FOLDED_ROWS - 1, False), (FEWEST_FOLDED_ROWS, True)):
        outcome = learned(tiny_engine, dataset_of(count))
        assert (outcome.folds is not None) == estimated
    assert not part_rows(dataset_of(FEWEST_CURVE_ROWS - 1), 0, (0.5,))[0].shares
    assert learned(tiny_engine, dataset_of(12), cross_validated=False).folds is None


def test_rows_that_the_start_knows_are_trained_on_by_every_fold_and_judge_nothing(tiny_engine: Engine) -> None:
    dataset, known = dataset_of(16), np.arange(16) % 5 == 0
    parted = part_rows(dataset, 0, (0.5,), known)
    assert sorted(np.concatenate([fold.held for fold in parted])) == np.flatnonzero(~known).tolist()
    for fold in parted:
        assert set(np.flatnonzero(known)) <= set(fold.kept)
        assert sorted([*fold.held, *fold.kept]) == list(range(16))
    settings = FewShotSettings(steps=8, batch=4, seeds=1, curve=(0.5,))
    outcome = learned(tiny_engine, dataset, settings, known=known)
    assert outcome.folds is not None
    np.testing.assert_array_equal(outcome.folds.judged, np.flatnonzero(~known))
    assert outcome.folds.scores.shape == outcome.folds.curve[0.5].shape == (12, 2)
    engine, rows, trie = tiny_engine, labelled(tiny_engine, dataset), tiny_engine.trie(["a", "b"])
    for number, z in enumerate(outcome.folds.z):
        held = np.flatnonzero(outcome.folds.fold == number)
        scores = log_probabilities(engine, [rows.ids[row] for row in held], z, trie)
        places = np.searchsorted(outcome.folds.judged, held)
        np.testing.assert_allclose(outcome.folds.scores[places], scores, atol=1e-5)
    assert outcome.folds.rows == {
        0.5: np.mean([len({*fold.shares[0.5], *np.flatnonzero(known)}) for fold in parted]),
        1.0: np.mean([len(fold.kept) for fold in parted]),
    }
    assert outcome.more_rows(rows.targets) is not None
    assert learned(tiny_engine, dataset, known=np.arange(16) >= 7).folds is None, "seven are too few"


def test_a_label_that_could_not_be_learned_without_a_row_has_no_estimate_of_it() -> None:
    rows = [Example(f"{WORDS[index]} film", None, ("a", "b", "c")[(index > 7) + (index > 15)]) for index in range(17)]
    dataset = Dataset("classification", ("a", "b", "c"), tuple(rows))
    parted = part_rows(dataset, 0)
    assert sorted(np.concatenate([fold.held for fold in parted])) == list(range(16)), "the only c is held out nowhere"
    assert all(16 in fold.kept for fold in parted)
    many = Dataset("classification", tuple(WORDS), tuple(replace(row, label=WORDS[n]) for n, row in enumerate(rows)))
    assert part_rows(many, 0) == []


def test_a_suspect_is_named_by_its_place_among_all_training_rows(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = np.arange(16) < 4
    outcome, targets = learned(tiny_engine, dataset_of(16), known=known), labelled(tiny_engine, dataset_of(16)).targets
    monkeypatch.setattr(
        "onboard.train.suspects.doubted_rows", lambda answers, given: [Doubt(len(given) - 1, 0, 0.9, 0.1)]
    )
    assert [suspect.row for suspect in outcome.suspects(targets)] == [15]


def test_the_same_seed_gives_the_same_bytes(tiny_engine: Engine) -> None:
    settings = FewShotSettings(steps=3, batch=4, seeds=2, curve=(0.5,))
    first, again, other = (learned(tiny_engine, dataset_of(16), settings, seed=seed) for seed in (1, 1, 2))
    assert first.trained.z.tobytes() == again.trained.z.tobytes()
    assert first.to_document() == again.to_document()
    assert first.folds is not None
    assert again.folds is not None
    for name in ("fold", "scores", "z"):
        assert getattr(first.folds, name).tobytes() == getattr(again.folds, name).tobytes()
    assert first.trained.z.tobytes() != other.trained.z.tobytes()


def test_memory_that_runs_short_changes_nothing_but_rounding(tiny_engine: Engine) -> None:
    whole = learned(tiny_engine, dataset_of(16))
    parts = learned(tiny_engine, dataset_of(16), trained_at_once=RowsAtOnce(3), scored_at_once=RowsAtOnce(2))
    np.testing.assert_allclose(parts.trained.z, whole.trained.z, atol=1e-4)
    assert parts.folds is not None
    assert whole.folds is not None
    np.testing.assert_allclose(parts.folds.scores, whole.folds.scores, atol=1e-4)


def test_it_can_be_stopped_after_a_step_and_before_a_batch_that_is_scored(tiny_engine: Engine) -> None:
    def stop(*_: Any) -> None:
        raise CancelledError("The job was cancelled.")

    for door in ("on_step", "before_batch"):
        with pytest.raises(CancelledError):
            learned(tiny_engine, dataset_of(8), **{door: stop})


def test_halves_of_the_folds_are_trained_in_smaller_batches_unless_that_takes_too_long(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[list[int]] = []

    def spy_train(engine: Engine, runs: Sequence[TrainingRun], *more: Any) -> list[Moved]:
        sizes.append([max(map(len, run.batches)) for run in runs])
        return [Moved(START, (0.5,), START[None]) for _ in runs]

    monkeypatch.setattr(fewshot, "train_side_by_side", spy_train)
    curved = FewShotSettings(steps=6, batch=8, seeds=1, curve=(0.5,))
    outcome = learned(tiny_engine, dataset_of(16), curved)
    assert sizes == [[8, *[6] * FOLDS, *[3] * FOLDS]]  # 16 rows, 12 and 6
    assert outcome.folds is not None
    assert sorted(outcome.folds.rows.values()) == [6, 12]
    passes = 6 * (8 + FOLDS * 6 + FOLDS * 3)
    tokens = float(np.mean([len(ids) for ids in labelled(tiny_engine, dataset_of(16)).ids]))
    seconds = Passes(trained=passes).seconds(tokens)
    monkeypatch.setattr(learning_curve, "CURVE_SECONDS", seconds + 1e-9)
    assert outcome.folds.curve.keys() == {0.5, 1.0}
    learned(tiny_engine, dataset_of(16), curved)
    assert len(sizes[-1]) == 1 + 2 * FOLDS
    monkeypatch.setattr(learning_curve, "CURVE_SECONDS", seconds - 1e-9)
    left = learned(tiny_engine, dataset_of(16), curved)
    assert len(sizes[-1]) == 1 + FOLDS
    assert left.folds is not None
    assert (left.folds.curve, left.folds.has_shares) == ({}, True)
    said = left.more_rows(labelled(tiny_engine, dataset_of(16)).targets)
    assert said is not None
    assert (said.gain, "too long" in str(said.reason)) == (None, True)


def test_held_out_rows_judge_embeddings_of_two_halves_which_change_nothing_else(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, held = dataset_of(20), labelled(tiny_engine, dataset_of(16))
    judged, plain = (
        learned(tiny_engine, rows, settings, cross_validated=False, held=held)
        for settings in (SETTINGS, replace(SETTINGS, curve=()))
    )
    np.testing.assert_allclose(judged.trained.z, plain.trained.z, atol=1e-6)
    assert (judged.share, judged.chosen_on, plain.halves) == (plain.share, 16, None)
    assert judged.halves is not None
    assert judged.halves.half.tolist() == [0, 1] * 8
    trie, half = tiny_engine.trie(["a", "b"]), two_halves(rows, 0)
    assert sorted(np.concatenate(half).tolist()) == list(range(20))
    targets = labelled(tiny_engine, rows).targets
    more = judged.more_rows(targets)
    assert more is not None
    assert [count for count, _ in more.points] == [10, 20]
    assert "16 rows are too few" in str(more.reason)
    assert plain.more_rows(targets) is None
    of_all = log_probabilities(tiny_engine, held.ids, judged.trained.z, trie)
    np.testing.assert_allclose(judged.halves.scores[1.0], of_all, atol=1e-5)
    monkeypatch.setattr(learning_curve, "CURVE_SECONDS", 0.0)
    left = learned(tiny_engine, rows, cross_validated=False, held=held)
    assert left.halves is not None
    assert left.halves.scores == {}
    assert [len(part) for part in left.halves.parts] == [10, 10], "a readout of each is made all the same"
    said = left.more_rows(targets)
    assert said is not None
    assert "too long" in str(said.reason)


@pytest.mark.parametrize(
    ("losses", "taken"),
    [((0.5, 0.6, 0.7, 0.8), 1.0), ((0.51, 0.5, 0.7, 0.8), 1.0), ((0.6, 0.5, 0.7, 0.8), 0.5),
     ((1.01, 2.0, 2.0, 2.0), 1.0), ((2.0, 2.0, 2.0, 2.0), 0.125)],
)  # fmt: skip
@pytest.mark.parametrize("held", [True, False])
def test_rows_that_were_not_trained_on_say_how_much_of_the_way_is_taken(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch, losses: Sequence[float], taken: float, held: bool
) -> None:
    left = [1.0, *losses]  # at the start, and after each share of the way
    monkeypatch.setattr(step_length, "mean_loss", lambda *_: left.pop(0))
    more = {"cross_validated": False, "held": labelled(tiny_engine, dataset_of(16))} if held else {}
    outcome, whole = learned(tiny_engine, dataset_of(16), **more), learned(tiny_engine, dataset_of(16), **NEVER)
    assert not left
    assert (outcome.share, outcome.chosen_on, whole.share) == (taken, 16 if held else None, 1.0)
    assert outcome.to_document().share == taken
    np.testing.assert_allclose(outcome.trained.z, START + taken * (whole.trained.z - START), atol=1e-5)
    if outcome.folds is not None:
        monkeypatch.setattr(step_length, "mean_loss", lambda *_: 0.0)
        fully = learned(tiny_engine, dataset_of(16)).folds
        assert fully is not None
        np.testing.assert_allclose(outcome.folds.z, START + taken * (fully.z - START), atol=1e-5)


def test_where_held_out_rows_lose_hardly_any_of_the_way_is_taken_and_too_few_have_no_say(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def farther_is_worse(_: Engine, ids: Sequence[Any], z: np.ndarray, *more: Any) -> np.ndarray:
        return np.full((len(ids), 2), -float(np.linalg.norm(z - START)))

    monkeypatch.setattr(learning, "log_probabilities", farther_is_worse)
    held = labelled(tiny_engine, dataset_of(16))
    outcome = learned(tiny_engine, dataset_of(16), cross_validated=False, held=held)
    assert (outcome.share, outcome.chosen_on) == (0.125, 16)
    few = LabelledRows(held.ids[:15], held.targets[:15])
    outcome = learned(tiny_engine, dataset_of(16), cross_validated=False, held=few)
    assert (outcome.share, outcome.chosen_on) == (1.0, None)


def test_many_held_out_rows_choose_by_a_fair_part_of_them() -> None:
    chosen = learning.choosing(1000)
    assert (len(chosen), len(set(chosen))) == (learning.MOST_CHOOSING, learning.MOST_CHOOSING)
    assert (chosen[0], chosen[128]) == (0, 500)
    assert learning.choosing(16) == list(range(16))
    assert learning.choosing(15) == []


def test_several_orders_of_the_batches_are_averaged(tiny_engine: Engine) -> None:
    one, two = (
        learned(tiny_engine, dataset_of(12), FewShotSettings(steps=3, batch=4, seeds=seeds), cross_validated=False)
        for seeds in (1, 2)
    )
    orders = [fewshot.batches([3] * 12, 3, 4, 0, number) for number in (0, 1)]
    assert [batch.tolist() for batch in orders[0]] != [batch.tolist() for batch in orders[1]]
    assert two.trained.z.dtype == np.float32
    assert 0 < np.abs(one.trained.z - two.trained.z).max() < np.abs(one.trained.z - START).max()
