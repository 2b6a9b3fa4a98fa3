"""Clusters of meaning, each named by a common word."""

from __future__ import annotations

import numpy as np

from onboard.making.curriculum.topics import common_words, find_level, nearest_to_centre

WORDS = ["music", "sports", "cooking", "money"]


def around(centres: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = np.repeat(centres, count, axis=0) + 0.05 * rng.normal(size=(len(centres) * count, centres.shape[1]))
    unit: np.ndarray = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float16)


def test_a_cluster_is_named_by_the_word_that_sets_it_apart() -> None:
    centres = np.eye(4, 8)
    word_vectors = around(centres, 1, seed=1)
    level = find_level(around(centres, 30), WORDS, word_vectors, 4, 0)
    assert sorted(level.names) == sorted(WORDS)
    for number, word in enumerate(WORDS):
        of_word = level.assignment[number * 30 : (number + 1) * 30]
        assert {level.names[cluster] for cluster in of_word} == {word}


def test_no_two_clusters_of_a_level_share_a_name_and_levels_have_their_sizes() -> None:
    rng = np.random.default_rng(2)
    vectors = around(np.eye(6, 8), 20)
    words = [f"word{chr(97 + index)}" for index in range(12)]
    word_vectors = rng.normal(size=(12, 8)).astype(np.float16)
    for size in (2, 6):
        level = find_level(vectors, words, word_vectors, size, 0)
        assert len(level.names) == len(set(level.names)) == size
        assert set(level.assignment) <= set(range(size))


def test_the_clustering_depends_on_the_seed_alone() -> None:
    vectors = around(np.eye(5, 8), 12)
    word_vectors = around(np.eye(5, 8), 1, seed=3)
    words = ["music", "sports", "cooking", "money", "travel"]
    first, again = (find_level(vectors, words, word_vectors, 3, 7) for _ in range(2))
    assert first.names == again.names
    np.testing.assert_array_equal(first.assignment, again.assignment)


def test_common_words_are_counted_by_text_and_the_commonest_are_left_out() -> None:
    every = [f"w{chr(97 + a)}{chr(97 + b)}x" for a in range(15) for b in range(10)]  # 150 words of every text
    texts = [" ".join([*every, "Kitchen"] + ["travel travel travel"] * (number == 0)) for number in range(3)]
    texts[0] += " kitchen"
    words = common_words([*texts, " ".join(every)])
    assert words == ["kitchen", "travel"]
    assert common_words(["a an the of"]) == []


def test_common_words_that_are_equally_frequent_stand_as_they_come_in_every_process() -> None:
    every = [f"w{chr(97 + a)}{chr(97 + b)}x" for a in range(15) for b in range(10)]
    tied = [f"{chr(122 - a)}{chr(97 + b)}tied" for a in range(6) for b in range(6)]
    assert common_words([" ".join([*every, *tied]), " ".join(every)]) == tied


def test_the_share_of_each_cluster_that_lies_nearest_to_its_centre_is_found() -> None:
    vectors = around(np.eye(2, 8), 10)
    assignment = np.repeat([0, 1], 10)
    vectors[[3, 14]] = np.eye(8)[7]  # two that are of no topic
    near = nearest_to_centre(vectors, assignment, 0.9)
    assert near.tolist() == [place not in (3, 14) for place in range(20)]
