"""Which of many candidates are measured at all."""

from __future__ import annotations

import numpy as np

from onboard.probe.prefilter import prefilter


def drawn(count: int, seed: int = 0) -> list[np.ndarray | None]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(16).astype(np.float32) for _ in range(count)]


def test_few_candidates_are_all_taken() -> None:
    assert prefilter(np.ones(16), drawn(12), nearest=8, spread=4) == list(range(12))


def test_the_nearest_are_taken_whatever_their_length() -> None:
    fingerprints = drawn(200)
    fingerprint = fingerprints[17]
    assert fingerprint is not None
    fingerprints[90] = 0.01 * fingerprint
    places = prefilter(fingerprint, fingerprints, nearest=2, spread=0)
    assert places == [17, 90]


def test_raw_fingerprints_are_put_on_the_scale_of_the_candidates_first() -> None:
    """What all datasets have in common, and a number that is large in every one, say nothing."""
    scale = np.array([1000.0, *[0.01] * 15], dtype=np.float32)
    shapes = np.array([fingerprint for fingerprint in drawn(200) if fingerprint is not None])
    rng = np.random.default_rng(3)
    shapes[[60, 61, 62]] = shapes[17] + 0.1 * rng.standard_normal((3, 16)).astype(np.float32)
    raw: list[np.ndarray | None] = list(5000.0 + shapes.astype(np.float64) * scale)
    like = raw[17]
    assert like is not None
    assert prefilter(like, raw, nearest=4, spread=0, scaled=False) == [17, 60, 61, 62]
    assert prefilter(like, raw, nearest=4, spread=0) != [17, 60, 61, 62]
    assert prefilter(like, [like] * 60, nearest=4, spread=2, scaled=False) == [0, 1, 2, 3, 4, 5]


def test_beside_the_nearest_stand_some_that_are_unlike_all_that_were_taken() -> None:
    """A crowd looks like the new task; the three others, which do not, are found all the same."""
    rng = np.random.default_rng(1)
    task, *others = np.eye(16, dtype=np.float32)[:4]
    crowd: list[np.ndarray | None] = [task + 0.01 * rng.standard_normal(16).astype(np.float32) for _ in range(100)]
    places = prefilter(task, [*crowd, *(-fingerprint for fingerprint in others)], nearest=5, spread=3)
    assert len(places) == 8
    assert places[-3:] == [100, 101, 102]


def test_no_candidate_is_taken_twice_though_all_are_alike() -> None:
    same: list[np.ndarray | None] = [np.ones(16, dtype=np.float32)] * 50
    places = prefilter(np.ones(16), same, nearest=5, spread=5)
    assert len(places) == len(set(places)) == 10


def test_those_without_a_fingerprint_are_all_taken_and_take_nobodys_place() -> None:
    task = np.ones(16, dtype=np.float32)
    fingerprints: list[np.ndarray | None] = [None, *[task] * 3, None, *[-task] * 10, None]
    assert prefilter(task, fingerprints, nearest=3, spread=0) == [0, 1, 2, 3, 4, 15]
    assert prefilter(task, [None] * 60, nearest=3, spread=0) == list(range(60))


def test_the_order_of_the_candidates_does_not_matter() -> None:
    fingerprints = drawn(300)
    task = drawn(1, seed=9)[0]
    assert task is not None
    order = np.random.default_rng(2).permutation(300)
    shuffled = prefilter(task, [fingerprints[index] for index in order], nearest=10, spread=5)
    assert sorted(order[shuffled].tolist()) == prefilter(task, fingerprints, nearest=10, spread=5)
