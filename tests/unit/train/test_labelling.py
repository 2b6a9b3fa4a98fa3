"""Which texts to label next: uncertain ones, and not many that say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_base import WORDS as VOCABULARY

from onboard.data.regression import Buckets
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.readout import probabilities_of
from onboard.pipeline.label_next import number_answer
from onboard.statistics.label_order import farthest_first, uncertainty
from onboard.train import labelling
from onboard.train.labelling import Next, Unlike, by_worth, label_next, suggested

WORDS = VOCABULARY.split()
Z = np.random.default_rng(2).standard_normal(16).astype(np.float32)


def test_uncertainty_is_nothing_when_sure_and_one_without_an_idea() -> None:
    unsure = uncertainty(np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0]]))
    np.testing.assert_allclose(unsure, [0.0, 1.0, np.log(2) / np.log(3)], atol=1e-6)
    np.testing.assert_array_equal(uncertainty(np.ones((2, 1))), [0.0, 0.0])


@pytest.mark.parametrize(("low", "high"), [(0.0, 2e-4), (0.0, 5.0), (2000.0, 2002.0), (0.0, 1e6)])
def test_a_number_keeps_the_digits_that_its_scale_asks_for(low: float, high: float) -> None:
    buckets = Buckets(low, high)
    probabilities = np.full(buckets.count, 1 / buckets.count)
    answer = number_answer(Next(0, probabilities, 1.0), buckets)
    assert answer["value"] == pytest.approx((low + high) / 2, abs=1e-3 * buckets.width)
    assert answer["spread"] == pytest.approx(np.std(buckets.values), abs=1e-3 * buckets.width)


def test_each_next_one_is_farthest_from_all_that_were_taken_and_repeats_are_left_out() -> None:
    angles = np.array([0.0, 0.05, 1.5, 0.0, 3.0, 0.8])
    features = 7.0 * np.stack([np.cos(angles), np.sin(angles)], 1)
    assert farthest_first(features, 4) == [0, 4, 2, 5]
    assert farthest_first(features, 9) == [0, 4, 2, 5, 1]


@given(st.integers(1, 40), st.integers(1, 25), st.integers(0, 2**31))
def test_nothing_is_taken_twice_and_never_more_than_asked(rows: int, count: int, seed: int) -> None:
    taken = farthest_first(np.random.default_rng(seed).standard_normal((rows, 4)), count)
    assert taken[0] == 0
    assert len(set(taken)) == len(taken) == min(rows, count)


@pytest.fixture
def ids(tiny_engine: Engine) -> list[list[int]]:
    texts = [f"{one} {two} film" for one in WORDS[:8] for two in WORDS[:8]]
    return tiny_engine.encoder.encode([(text, None) for text in texts])


def test_only_the_most_uncertain_are_told_apart_and_they_are_shown_in_that_order(
    tiny_engine: Engine, ids: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelling, "SHORTLIST", 30)
    trie = tiny_engine.trie(["a", "b"])
    suggested = label_next(tiny_engine, ids, trie, Z)
    assert len({suggestion.row for suggestion in suggested}) == len(suggested) == labelling.WANTED
    unsure = [suggestion.uncertainty for suggestion in suggested]
    assert unsure == sorted(unsure, reverse=True)
    np.testing.assert_allclose([suggestion.probabilities.sum() for suggestion in suggested], 1.0, atol=1e-5)
    monkeypatch.setattr(labelling, "WANTED", len(ids))
    everything = [suggestion.row for suggestion in label_next(tiny_engine, ids, trie, Z)]
    assert {suggestion.row for suggestion in suggested} <= set(everything[:30])
    assert [suggestion.row for suggestion in suggested] != everything[:20]  # some of them say what others say


@pytest.mark.parametrize(("texts", "named"), [(1, 1), (3, 1), (7, 3), (30, 15), (41, 20), (64, 20)])
def test_of_few_texts_half_are_named_and_more_are_compared(
    tiny_engine: Engine, ids: list[list[int]], monkeypatch: pytest.MonkeyPatch, texts: int, named: int
) -> None:
    compared = []

    def farthest(features: np.ndarray, count: int) -> list[int]:
        compared.append(len(features))
        return farthest_first(features, count)

    monkeypatch.setattr(labelling, "farthest_first", farthest)
    assert len(label_next(tiny_engine, ids[:texts], tiny_engine.trie(["a", "b"]), Z)) == named
    assert compared[0] >= min(named * 3 // 2, texts)
    assert compared[0] <= max(texts // 2, named * 3 // 2)


def test_what_is_answered_surely_is_not_asked_for_unless_nothing_else_is_there(
    tiny_engine: Engine, ids: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sure = np.array([0.99, 0.96, 0.6, 0.97, 0.94, 0.98])
    monkeypatch.setattr(
        labelling, "probabilities_of", lambda _, given, *rest: np.stack([sure, 1 - sure], 1)[: len(given)]
    )
    trie = tiny_engine.trie(["a", "b"])
    assert [suggestion.row for suggestion in label_next(tiny_engine, ids[:6], trie, Z)] == [2, 4]
    assert [suggestion.row for suggestion in label_next(tiny_engine, ids[:2], trie, Z)] == [1]


def test_memory_that_runs_short_changes_nothing(tiny_engine: Engine, ids: list[list[int]]) -> None:
    trie = tiny_engine.trie(["a", "b"])
    wide, narrow = (label_next(tiny_engine, ids, trie, Z, at_once=RowsAtOnce(limit)) for limit in (None, 3))
    np.testing.assert_allclose(
        [suggestion.uncertainty for suggestion in wide], [suggestion.uncertainty for suggestion in narrow], atol=1e-4
    )


def test_texts_unlike_the_data_come_last_and_only_where_others_are_too_few(
    tiny_engine: Engine, ids: list[list[int]]
) -> None:
    trie = tiny_engine.trie(["a", "b"])

    def of(texts: int, unlike: Unlike | None = None) -> list[Next]:
        probabilities = probabilities_of(tiny_engine, ids[:texts], Z, trie, None)
        return suggested(tiny_engine, ids[:texts], probabilities, RowsAtOnce(), unlike)

    first = of(len(ids))[0].row
    assert first not in [text.row for text in of(len(ids), lambda places: np.isin(places, [first]))]
    few = of(8, lambda places: places > 1)
    assert [text.unlike for text in few] == [False, False, True, True]
    assert [text.unlike for text in sorted([few[3], *few[:3]], key=by_worth)] == [False, False, True, True]
    assert len(of(8, lambda places: np.ones(len(places), dtype=np.bool_))) == 4
