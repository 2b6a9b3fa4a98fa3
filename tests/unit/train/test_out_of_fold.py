"""Cross-validation of few rows: no row is predicted by an embedding that has trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiny_base import WORDS as VOCABULARY

from onboard.domain.dataset import Dataset, Example
from onboard.model.engine import Engine
from onboard.train import crossvalidation
from onboard.train.crossvalidation import FEWEST_ROWS, FOLDS, out_of_fold
from onboard.train.fewshot import FewShotSettings, LabelledRows, Trained, train_embedding

SIZE = 16
WORDS = VOCABULARY.split()[:16]
SETTINGS = FewShotSettings(steps=2, batch=4)


def dataset_of(count: int) -> Dataset:
    rows = tuple(Example(f"{WORDS[index]} film", None, ("a", "b")[index % 2]) for index in range(count))
    return Dataset("classification", ("a", "b"), rows)


def labelled(engine: Engine, dataset: Dataset) -> LabelledRows:
    ids = engine.encoder.encode([(row.text_a, None) for row in dataset.train])
    return LabelledRows(ids, np.eye(2, dtype=np.float32)[dataset.class_indices(dataset.train)])


def fold_out(engine: Engine, dataset: Dataset, rows: LabelledRows, told: list[int]) -> dict[str, Any] | None:
    start = np.zeros(SIZE, dtype=np.float32)
    return out_of_fold(
        engine, start, rows, engine.trie(["a", "b"]), SETTINGS, 0, dataset, lambda step, loss: told.append(step)
    )


def test_no_fold_trains_on_a_row_that_it_holds_out(tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    trained_on: list[list[Sequence[int]]] = []
    predicted: list[tuple[int, list[Sequence[int]]]] = []

    def spy_train(engine: Engine, start: np.ndarray, rows: LabelledRows, *more: Any) -> Trained:
        trained_on.append(list(rows.ids))
        found = train_embedding(engine, start, rows, *more)
        return Trained(np.full(SIZE, len(trained_on), dtype=np.float32), found.losses, found.norms, 0.0)

    def spy_predict(engine: Engine, ids: Sequence[Sequence[int]], z: np.ndarray, trie: Any, **more: Any) -> np.ndarray:
        predicted.append((int(z[0]), list(ids)))
        return np.full((len(ids), 2), float(np.log(0.5)))

    monkeypatch.setattr(crossvalidation, "train_embedding", spy_train)
    monkeypatch.setattr(crossvalidation, "log_probabilities", spy_predict)
    dataset = dataset_of(14)
    rows = labelled(tiny_engine, dataset)
    assert len({tuple(ids) for ids in rows.ids}) == 14  # every row can be told apart
    found = fold_out(tiny_engine, dataset, rows, [])
    assert found is not None
    assert len(trained_on) == len(predicted) == FOLDS
    for number, ids in predicted:
        seen = {tuple(each) for each in trained_on[number - 1]}
        held = {tuple(each) for each in ids}
        assert not seen & held
        assert len(seen) + len(held) == 14
    everything = [tuple(each) for _, ids in predicted for each in ids]
    assert sorted(everything) == sorted(tuple(ids) for ids in rows.ids)
    assert [found["fold"].count(fold) for fold in range(FOLDS)] == [len(ids) for _, ids in predicted]


def test_every_row_gets_probabilities_that_sum_to_one_and_the_fold_that_made_them(tiny_engine: Engine) -> None:
    dataset, told = dataset_of(10), list[int]()
    found = fold_out(tiny_engine, dataset, labelled(tiny_engine, dataset), told)
    assert found is not None
    probabilities = np.array(found["probabilities"])
    assert probabilities.shape == (10, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
    assert set(found["fold"]) == set(range(FOLDS))
    assert told == [1, 2] * FOLDS


def test_the_folds_are_stratified(tiny_engine: Engine) -> None:
    dataset = dataset_of(16)
    found = fold_out(tiny_engine, dataset, labelled(tiny_engine, dataset), [])
    assert found is not None
    for fold in range(FOLDS):
        held = [row for row, number in zip(dataset.train, found["fold"], strict=True) if number == fold]
        assert sorted(str(row.label) for row in held) == ["a", "a", "b", "b"]


def test_too_few_rows_have_no_estimate(tiny_engine: Engine) -> None:
    told: list[int] = []
    for count, estimated in ((FEWEST_ROWS - 1, False), (FEWEST_ROWS, True)):
        dataset = dataset_of(count)
        found = fold_out(tiny_engine, dataset, labelled(tiny_engine, dataset), told)
        assert (found is not None) == estimated
    assert told  # only of the second
