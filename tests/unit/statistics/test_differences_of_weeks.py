"""Sums of texts that can be added, and what they say about two groups of texts, against references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import fisher_exact, mannwhitneyu

from onboard.statistics.drift import (
    DIRECTIONS,
    EDGES,
    EVERY,
    FALSE_ALARMS,
    OF_TEXTS,
    Sums,
    Training,
    answers_of,
    axes_of,
    beyond_level,
    chance_index,
    compare,
    directions,
    fisher_more,
    level_of_look,
    look_at,
    stability_index,
    sums_of_answers,
    sums_of_features,
)

WIDTH, LABELS = 40, 4


def texts(seed: int, n: int, *, new: float = 0.0, labels: int = LABELS) -> Sums:
    """Sums of n texts, a share of which is of a new topic: other features, unknown, unsure answers of one label."""
    rng = np.random.default_rng(seed)
    is_new = rng.random(n) < new
    mixing = np.random.default_rng(0).standard_normal((WIDTH, WIDTH))
    features = rng.standard_normal((n, WIDTH)) @ mixing + 3 + 4 * is_new[:, None]
    probabilities = rng.dirichlet(np.full(labels, 0.5), n)
    probabilities[is_new] = np.full(labels, 0.6 / (labels - 1))
    probabilities[is_new, 0] = 0.4
    unknown = np.where(is_new, rng.random(n) < 0.7, rng.random(n) < 0.05)
    return sums_of_answers(*answers_of(probabilities, several=False), unknown) + sums_of_features(features, labels)


def same(one: Sums, other: Sums) -> None:
    for name, value in one.to_json().items():
        assert np.allclose(value, other.to_json()[name], rtol=1e-6), name


def test_sums_of_parts_are_those_of_the_whole_and_survive_their_storage() -> None:
    rng = np.random.default_rng(1)
    features, answers = rng.standard_normal((60, WIDTH)), answers_of(rng.dirichlet(np.ones(3), 60), several=False)
    whole = sums_of_features(features, 3) + sums_of_answers(*answers)
    parts = [sums_of_features(features[at], 3) + sums_of_answers(*(part[at] for part in answers))
             for at in (slice(0, 7), slice(7, 60))]  # fmt: skip
    same(parts[0] + parts[1], whole)
    same(Sums.from_json(whole.to_json()), whole)
    assert (whole.answered, whole.read, whole.labels.sum(), whole.confidence.sum()) == (60, 60, 60, 60)


@pytest.mark.parametrize("wrong", [
    {"labels": "x"}, {"total": [0.0]}, {"products": [float("nan")] * 300}, {"unknown": -1}, {"confidence": [1]},
])  # fmt: skip
def test_stored_sums_of_another_shape_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sums.from_json({**Sums.empty(2).to_json(), **wrong})


def test_directions_are_the_same_for_ever() -> None:
    signs = directions(8) * np.sqrt(8)
    assert signs.shape == (8, DIRECTIONS)
    assert [round(sign) for sign in signs[0, :8]] == [1, -1, 1, -1, -1, -1, 1, 1]
    assert abs(signs).min() == abs(signs).max() == pytest.approx(1)


def test_an_answer_names_the_likeliest_label_or_all_of_at_least_one_half() -> None:
    chosen, confidence = answers_of(np.array([[0.7, 0.3], [0.2, 0.8]]), several=False)
    assert chosen.tolist() == [[1, 0], [0, 1]]
    assert confidence.tolist() == [0.7, 0.8]
    chosen, confidence = answers_of(np.array([[0.7, 0.5], [0.2, 0.1]]), several=True)
    assert chosen.tolist() == [[1, 1], [0, 0]]
    assert confidence.tolist() == [0.5, 0.8]


def test_the_histogram_has_a_bin_for_every_confidence() -> None:
    confidence = np.array([0.0, 0.2, 0.5, 0.949, 0.95, 1.0])
    sums = sums_of_answers(np.ones((6, 1), dtype=np.int64), confidence)
    assert len(sums.confidence) == len(EDGES) + 1
    assert sums.confidence.tolist() == [1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 1]
    assert sums.sureness == pytest.approx((0.1 + 0.25 + 0.55 + 0.925 + 0.965 + 0.995) / 6)


def test_the_tests_agree_with_their_references() -> None:
    assert fisher_more(9, 40, 3, 60) == pytest.approx(fisher_exact([[9, 31], [3, 57]], "greater").pvalue)
    assert fisher_more(0, 40, 3, 60) == 1.0
    now, before = texts(1, 300, new=0.3), texts(2, 200)
    at_bins = [np.repeat(np.arange(len(EDGES) + 1), sums.confidence) for sums in (now, before)]
    expected = mannwhitneyu(*at_bins, method="asymptotic").pvalue
    found = compare(now, before).confidence
    assert found is not None
    assert found.p == pytest.approx(expected, rel=1e-6)


def test_the_distance_of_means_is_hotellings() -> None:
    rng = np.random.default_rng(3)
    n, m = 90, 800
    one, other = rng.standard_normal((n, WIDTH)) + 0.2, rng.standard_normal((m, WIDTH))
    found = compare(sums_of_features(one, 2), sums_of_features(other, 2)).features
    assert found is not None
    on = [rows @ directions(WIDTH) for rows in (one, other)]
    pooled = ((n - 1) * np.cov(on[0].T) + (m - 1) * np.cov(on[1].T)) / (n + m - 2)
    apart = on[0].mean(0) - on[1].mean(0)
    squared = float(apart @ np.linalg.solve(pooled, apart))
    assert found.value**2 == pytest.approx(squared)
    from scipy.stats import f

    freedom = n + m - DIRECTIONS - 1
    as_f = squared * n * m / (n + m) * freedom / (DIRECTIONS * (n + m - 2))
    assert found.p == pytest.approx(f.sf(as_f, DIRECTIONS, freedom), rel=1e-6)


def test_few_rows_are_compared_on_the_axes_of_the_largest_spread() -> None:
    assert [axes_of(rows) for rows in (8, 90, 200, 719, 720, 5000)] == [3, 3, 6, 23, 24, 24]
    rng = np.random.default_rng(6)
    scale = np.linspace(0.1, 3, WIDTH)
    one, other = rng.standard_normal((200, WIDTH)) * scale + 0.3, rng.standard_normal((100, WIDTH)) * scale
    found = compare(sums_of_features(one, 2), sums_of_features(other, 2)).features
    assert found is not None
    on = [rows @ directions(WIDTH) for rows in (one, other)]
    main = np.linalg.eigh(np.cov(np.concatenate(on).T))[1][:, -3:]
    a, b = (rows @ main for rows in on)
    pooled = (199 * np.cov(a.T) + 99 * np.cov(b.T)) / 298
    squared = float((a.mean(0) - b.mean(0)) @ np.linalg.solve(pooled, a.mean(0) - b.mean(0)))
    assert found.value**2 == pytest.approx(squared)
    from scipy.stats import f

    assert found.p == pytest.approx(f.sf(squared * 200 * 100 / 300 * 296 / (3 * 298), 3, 296), rel=1e-6)


def test_the_distance_of_means_keeps_its_level_with_few_rows() -> None:
    ps = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        groups = [sums_of_features(rng.standard_exponential((count, WIDTH)), 2) for count in (500, 32)]
        found = compare(*groups).features
        assert found is not None
        ps.append(found.p)
    assert np.mean(np.array(ps) < 0.05) == pytest.approx(0.05, abs=0.03)


def test_two_groups_of_constant_features_differ() -> None:
    one, other = (sums_of_features(np.full((100, WIDTH), value), 2) for value in (1.0, 2.0))
    found = compare(one, other).features
    assert found is not None
    assert found.p < 1e-9


def test_the_stability_index_has_its_closed_form_and_its_chance() -> None:
    p, q = np.array([30.5, 70.5]) / 101, np.array([50.5, 50.5]) / 101
    assert stability_index(np.array([30, 70]), np.array([50, 50])) == pytest.approx(((p - q) * np.log(p / q)).sum())
    assert stability_index(np.array([5, 0]), np.array([5, 0])) == pytest.approx(0)
    rng, shares = np.random.default_rng(4), np.array([0.4, 0.3, 0.2, 0.1])
    drawn = [stability_index(rng.multinomial(400, shares), rng.multinomial(300, shares)) for _ in range(2000)]
    assert np.mean(np.array(drawn) > chance_index(4, 400, 300)) == pytest.approx(0.05, abs=0.02)


def test_all_looks_of_a_week_together_keep_the_level() -> None:
    looks = sorted({look_at(count) for count in range(100_000)} - {0})
    assert looks[:5] == [62, 125, 250, 500, 1000]
    assert [look_at(count) for count in (0, 61, 62, 124, 499, 500, 999)] == [0, 0, 62, 62, 250, 500, 500]
    for tests in (1, 2, 8):
        assert tests * sum(level_of_look(look, tests) for look in looks) <= FALSE_ALARMS
    assert (
        level_of_look(500, 8) == pytest.approx(3 * level_of_look(250, 8)) == pytest.approx(3 * level_of_look(1000, 8))
    )
    assert level_of_look(500, 1) == FALSE_ALARMS / 2
    assert level_of_look(500, 0) == level_of_look(500, 1)


def test_only_tests_that_are_made_share_the_level_of_a_look() -> None:
    before, after = replace(Sums.empty(2), judged=200, unknown=10), replace(Sums.empty(2), judged=500)
    rare = next(
        unknown for unknown in range(25, 100) if compare(replace(after, unknown=unknown), before).unknown.p < 0.01
    )  # type: ignore[union-attr]
    alone = compare(replace(after, unknown=rare), before)
    many = compare(texts(1, 500), texts(2, 600))
    assert beyond_level([(alone, OF_TEXTS)], 500) == [["unknown"]]
    assert beyond_level([(alone, OF_TEXTS), (many, EVERY)], 500) == [[], []]  # five tests share it
    assert beyond_level([(alone, OF_TEXTS), (many, ())], 500) == [["unknown"], []]
    assert beyond_level([], 500) == []


@pytest.mark.parametrize("rows", [32, 400])
def test_texts_like_the_training_rows_hardly_ever_raise_an_alarm(rows: int) -> None:
    alarms = [
        compare(texts(2 * seed, 250), texts(2 * seed + 1, rows)).beyond(FALSE_ALARMS / 4) for seed in range(150)
    ]  # fmt: skip
    assert np.mean([bool(alarm) for alarm in alarms]) < 0.1


def test_a_new_topic_is_noticed_by_everything() -> None:
    differences = compare(texts(1, 500, new=0.2), texts(2, 600))
    assert set(differences.beyond(level_of_look(500, 8))) == set(EVERY)
    assert all(one.value > one.chance for one in differences.named().values())
    labels = [index for index, chance in differences.by_label if index > chance]
    assert labels[0] == differences.by_label[0][0]  # the label that new texts are answered with


def test_a_certain_difference_that_is_tiny_is_no_alarm() -> None:
    counts = np.array([500_000, 500_000])
    now = replace(Sums.empty(2), answered=1_000_000, labels=counts + np.array([5000, -5000]))
    before = replace(Sums.empty(2), answered=1_000_000, labels=counts)
    found = compare(now, before).labels
    assert found is not None
    assert found.p < 1e-9
    assert not found.matters


def test_too_few_texts_and_other_labels_say_nothing() -> None:
    assert compare(texts(1, 29), texts(2, 300)).named() == {}
    assert compare(texts(1, 300), texts(2, 7)).named() == {}
    assert set(compare(texts(1, 300), texts(2, 300, labels=3)).named()) == set(OF_TEXTS)
    constant = sums_of_features(np.ones((100, WIDTH)), 2)
    assert compare(constant, constant).features is None


def test_several_labels_are_compared_one_by_one() -> None:
    rng = np.random.default_rng(5)
    before = sums_of_answers(*answers_of(rng.random((400, 3)) * [1, 1, 0.6], several=True))
    now = sums_of_answers(*answers_of(rng.random((400, 3)) * [1, 1, 0.9], several=True))
    found = compare(now, before, several=True)
    assert found.labels is not None
    assert "labels" in found.beyond(0.001)
    assert [index > chance for index, chance in found.by_label] == [False, False, True]


def test_no_alarm_rests_on_cross_validated_answers() -> None:
    assert Training(Sums.empty(2), held_out=False).names == OF_TEXTS
    assert Training(Sums.empty(2), held_out=True).names == EVERY
