"""Clusters of meaning, each named by a common word."""

from __future__ import annotations

import numpy as np

from onboard.pretrain.topics import common_words, find_topics

WORDS = ["music", "sports", "cooking", "money"]


def around(centres: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = np.repeat(centres, count, axis=0) + 0.05 * rng.normal(size=(len(centres) * count, centres.shape[1]))
    unit: np.ndarray = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float16)


def test_a_cluster_is_named_by_the_word_that_sets_it_apart() -> None:
    centres = np.eye(4, 8)
    word_vectors = around(centres, 1, seed=1)
    topics = find_topics(around(centres, 30), WORDS, word_vectors, [4], dict.fromkeys(WORDS, 9), 0)
    (level,) = topics.levels
    assert sorted(level.names) == sorted(WORDS)
    for number, word in enumerate(WORDS):
        of_word = level.assignment[number * 30 : (number + 1) * 30]
        assert {level.names[cluster] for cluster in of_word} == {word}


def test_no_two_clusters_of_a_level_share_a_name_and_levels_have_their_sizes() -> None:
    rng = np.random.default_rng(2)
    vectors = around(np.eye(6, 8), 20)
    words = [f"word{chr(97 + index)}" for index in range(12)]
    word_vectors = rng.normal(size=(12, 8)).astype(np.float16)
    topics = find_topics(vectors, words, word_vectors, [2, 6], {word: index for index, word in enumerate(words)}, 0)
    assert [len(level.names) for level in topics.levels] == [2, 6]
    assert all(len(set(level.names)) == len(level.names) for level in topics.levels)
    assert all(set(level.assignment) <= set(range(len(level.names))) for level in topics.levels)
    level = topics.levels[1]
    assert topics.first_tokens(1).tolist() == [topics.token_of[name] for name in level.names]


def test_the_clustering_depends_on_the_seed_alone() -> None:
    vectors = around(np.eye(5, 8), 12)
    word_vectors = around(np.eye(5, 8), 1, seed=3)
    words = ["music", "sports", "cooking", "money", "travel"]
    first, again = (find_topics(vectors, words, word_vectors, [3], dict.fromkeys(words, 1), 7) for _ in range(2))
    assert first.levels[0].names == again.levels[0].names
    np.testing.assert_array_equal(first.levels[0].assignment, again.levels[0].assignment)


def test_common_words_are_counted_by_text_and_the_commonest_are_left_out() -> None:
    every = [f"w{chr(97 + a)}{chr(97 + b)}x" for a in range(15) for b in range(10)]  # 150 words of every text
    texts = [" ".join([*every, "Kitchen"] + ["travel travel travel"] * (number == 0)) for number in range(3)]
    texts[0] += " kitchen"
    found = common_words([*texts, " ".join(every)])
    assert found == ["kitchen", "travel"]
    assert common_words(["a an the of"]) == []
