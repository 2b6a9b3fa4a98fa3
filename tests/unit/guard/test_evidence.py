"""What a task is looked at on, and its two halves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.guarded import earlier, pairs, texts

from onboard.guard.evidence import OWN, PAIR, SINGLE, Canaries, Material, gather
from onboard.guard.settings import GuardSettings
from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine

SETTINGS = GuardSettings(fewest_rows=40, texts=16)
NONE = Canaries([], [])


@pytest.fixture
def canaries(tiny_engine: Engine) -> Canaries:
    return Canaries.sorted(tiny_engine.encoder, [*pairs(tiny_engine, 30, 8), *texts(tiny_engine, 50, 9)])


def counts(material: Material) -> list[int]:
    return [int((material.group == group).sum()) for group in (OWN, SINGLE, PAIR)]


def test_canaries_are_told_apart_by_their_shape(tiny_engine: Engine) -> None:
    single, pair = tiny_engine.encoder.encode([("a good film", None), ("a good film", "a bad plot")])
    assert Canaries.sorted(tiny_engine.encoder, [pair, single, pair]) == Canaries([single], [pair, pair])


def test_enough_held_out_rows_decide_alone(tiny_engine: Engine, canaries: Canaries) -> None:
    evidence = gather(earlier(tiny_engine, "reviews", rows=40, own=20), canaries, SETTINGS, 0)
    assert evidence.evidence == "held-out rows"
    assert len(evidence.ids) == len(evidence.targets) == 40


def test_with_fewer_rows_texts_of_its_own_and_canaries_are_looked_at_too(
    tiny_engine: Engine, canaries: Canaries
) -> None:
    task = earlier(tiny_engine, "reviews", rows=10, own=20)
    evidence = gather(task, canaries, SETTINGS, 0)
    assert (evidence.evidence, len(evidence.targets), counts(evidence)) == ("divergence", 10, [16, 16, 16])
    assert task.rows is not None
    assert evidence.ids[:10] == task.rows.ids
    for group, texts_of in ((OWN, [*task.rows.ids, *task.texts]), (SINGLE, canaries.singles), (PAIR, canaries.pairs)):
        assert all(evidence.ids[place] in texts_of for place in np.flatnonzero(evidence.group == group))


def test_a_shipped_task_has_canaries_only(tiny_engine: Engine, canaries: Canaries) -> None:
    assert counts(gather(earlier(tiny_engine, "sst2"), canaries, SETTINGS, 0)) == [0, 16, 16]


def test_a_group_of_too_few_texts_says_nothing(tiny_engine: Engine, canaries: Canaries) -> None:
    evidence = gather(earlier(tiny_engine, "reviews", rows=3, own=4), canaries, SETTINGS, 0)
    assert (counts(evidence), len(evidence.targets)) == ([0, 16, 16], 0)
    few = Canaries(canaries.singles, canaries.pairs[:7])
    assert counts(gather(earlier(tiny_engine, "reviews", own=8), few, SETTINGS, 0)) == [8, 16, 0]


def test_a_task_with_next_to_nothing_has_no_evidence(tiny_engine: Engine) -> None:
    evidence = gather(earlier(tiny_engine, "reviews", rows=3, own=4), Canaries(texts(tiny_engine, 4), []), SETTINGS, 0)
    assert (evidence.evidence, evidence.ids) == (None, [])


def test_the_halves_share_labels_and_groups_and_no_row(tiny_engine: Engine, canaries: Canaries) -> None:
    evidence = gather(earlier(tiny_engine, "reviews", rows=60), NONE, SETTINGS, 0)
    first, second = evidence.of(0), evidence.of(1)
    assert sorted([*first, *second]) == list(range(60)) == evidence.of(None).tolist()
    for label in (0, 1):
        ones = [int((evidence.targets[half].argmax(1) == label).sum()) for half in (first, second)]
        assert abs(ones[0] - ones[1]) <= 1
    mixed = gather(earlier(tiny_engine, "reviews", own=16), canaries, SETTINGS, 0)
    for group in (OWN, SINGLE, PAIR):
        assert [int((mixed.group[mixed.of(half)] == group).sum()) for half in (0, 1)] == [8, 8]


def test_the_halves_are_of_one_size_where_every_label_is_single(tiny_engine: Engine) -> None:
    """As the buckets of a regression nearly are."""
    ids = texts(tiny_engine, 41)
    task = replace(earlier(tiny_engine, "scores"), rows=LabelledRows(ids, np.eye(41)))
    evidence = gather(task, NONE, SETTINGS, 0)
    assert abs(len(evidence.of(0)) - len(evidence.of(1))) == 1


def test_seed_and_name_decide_the_draw(tiny_engine: Engine, canaries: Canaries) -> None:
    def drawn(name: str, seed: int) -> Material:
        return gather(earlier(tiny_engine, name), canaries, SETTINGS, seed)

    def alike(one: Material, other: Material) -> bool:
        return one.ids == other.ids and np.array_equal(one.half, other.half)

    assert alike(drawn("a", 0), drawn("a", 0))
    assert not alike(drawn("a", 0), drawn("a", 1))
    assert not alike(drawn("a", 0), drawn("b", 0))
