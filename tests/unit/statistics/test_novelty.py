"""Texts that are unlike a task's data: how they are told, stored with a version, and answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.refusals import refused

from onboard.bases import Base
from onboard.errors import DamagedError
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.statistics.drift import fisher_more
from onboard.statistics.novelty import find_novelty, nearest
from onboard.storage.embedding import pack_embedding
from onboard.storage.novelty import novelty_facts, novelty_in, novelty_tensors

LABELS = ("bad", "good")


def rows(count: int, centre: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, 1.0, (count, 8))


def test_few_texts_like_the_rows_are_taken_for_unknown_and_far_ones_are_told() -> None:
    train = np.concatenate([rows(100, 0.0), rows(100, 6.0, 1)])
    novelty = find_novelty(train, np.repeat([0, 1], 100), rows(200, 0.0, 2), rows(50, -9.0, 3))
    assert novelty is not None
    assert (novelty.rows, novelty.texts, novelty.misses) == (200, 50, 0.0)
    assert 0.0 < novelty.false_alarms < 0.12
    assert novelty.unknown(rows(400, 6.0, 4)).mean() < 0.12
    assert novelty.unknown(rows(400, 3.0, 5)).all()


def test_a_row_is_left_out_of_its_own_mean() -> None:
    train, groups = rows(9, 0.0), np.array([0, 0, 0, 0, 0, 0, 0, 0, 1])
    novelty = find_novelty(train, groups, rows(0, 0.0), rows(1, 9.0))
    assert novelty is not None
    left_out = [
        nearest(train[[row]], np.stack([train[(groups == kind) & (np.arange(9) != row)].mean(0) for kind in kinds]))
        for row, kinds in enumerate([(0, 1)] * 8 + [(0,)])
    ]
    assert novelty.limit == pytest.approx(float(np.max(left_out)), rel=1e-3)
    assert find_novelty(train[:7], groups[:7], rows(0, 0.0), rows(1, 9.0)) is None


def test_training_rows_and_held_out_rows_are_the_reference_for_unknown_texts() -> None:
    """Fisher's exact test against all rows that were left out keeps its level, although training rows set the limit."""
    groups, nothing = np.repeat([0, 1], 40), rows(0, 0.0)
    ps: dict[int, list[float]] = {0: [], 40: []}
    for seed in range(300):
        some = np.random.default_rng(seed).normal(0.0, 1.0, (420, 8))
        for held, found in ps.items():
            novelty = find_novelty(some[:80], groups, some[80 : 80 + held] if held else nothing, rows(9, 9.0))
            assert novelty is not None
            compared, unknown = novelty.left_out(80, held)
            assert compared == 80 + held
            assert unknown == 3 + (round(novelty.false_alarms * held) if held else 0)
            found.append(fisher_more(int(novelty.unknown(some[120:]).sum()), 300, unknown, compared))
    for found in ps.values():
        assert 0.005 < np.mean(np.array(found) <= 0.05) < 0.075


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_features_that_are_no_numbers_or_too_large_say_nothing(value: float) -> None:
    train = rows(9, 0.0)
    train[4, 2] = value
    assert find_novelty(train, np.zeros(9, dtype=np.int64), rows(0, 0.0), rows(1, 9.0)) is None


def test_a_version_says_so_where_it_is_asked_and_where_it_cannot_names_the_remedy(
    tiny_services: Services, tiny_base: Base, tiny_engine: Engine
) -> None:
    texts = ("a good film", "sad", "the plot was awful and long")
    features = bare_features(tiny_engine, tiny_engine.encoder.encode([(text, None) for text in texts]))
    novelty = find_novelty(np.repeat(features[:1], 8, 0), np.zeros(8, dtype=np.int64), features[:0], features[1:])
    assert novelty is not None
    novelty = replace(novelty, limit=1e-3)
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), novelty=novelty)
    add_version(tiny_services, tiny_base, "old", LABELS, LABELS, z=embedding_of(2))
    predictor = Predictor(tiny_services)
    asked = [{"task": "mood", "text": text, "unknown": True} for text in texts]
    others = [{"task": "mood", "text": texts[1]}, {"task": "old", "text": texts[0]}]
    answers = predictor.predict([*asked, *others])
    assert [answer.unknown for answer in answers] == [False, True, True, None, None]
    assert answers[1].to_json()["unknown"] is True
    assert "unknown" not in answers[3].to_json()
    assert answers[1].probabilities == pytest.approx(answers[3].probabilities, abs=1e-6)
    narrowed = predictor.predict([{**asked[1], "labels": list(LABELS)}])
    assert narrowed[0].unknown is True
    with refused("version-without-novelty"):
        predictor.predict([*asked, {**others[1], "unknown": True}])
    outcomes = predictor.outcomes([asked[0], {**others[1], "unknown": True}])
    assert [type(outcome).__name__ for outcome in outcomes] == ["Prediction", "Unanswered"]
    with refused("input-field-wrong", row=1, field="unknown"):
        predictor.predict([{**asked[0], "unknown": "yes"}])


def test_what_a_file_knows_is_read_again_and_no_number_is_damaged(tmp_path: Path) -> None:
    novelty = find_novelty(rows(20, 0.0), np.zeros(20, dtype=np.int64), rows(0, 0.0), rows(5, 9.0))
    assert novelty is not None
    facts, tensors = novelty_facts(novelty), novelty_tensors(novelty)
    again = novelty_in(pack_embedding(embedding_of(0), facts, tensors))
    assert again is not None
    assert (again.means == novelty.means).all()
    assert replace(again, means=novelty.means) == novelty
    assert novelty_in(pack_embedding(embedding_of(0), {})) is None
    broken = {"known": np.full_like(novelty.means, np.nan)}
    for damaged in (
        pack_embedding(embedding_of(0), facts),
        pack_embedding(embedding_of(0), facts, broken),
        *(pack_embedding(embedding_of(0), {"unknown": no_facts}, tensors) for no_facts in ("far", "1", "[]")),
    ):
        with pytest.raises(DamagedError):
            novelty_in(damaged)
