"""A readout in closed form: what it predicts without rows is what a readout without these rows would."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load
from support.refusals import refused

from onboard.statistics.blocks import with_names
from onboard.statistics.decomposition import decomposed
from onboard.statistics.probabilities import blend, mean_loss
from onboard.statistics.readout import Readout, answers_after, fit_readout
from onboard.statistics.ridge import Path
from onboard.statistics.share import choose_share, usual_share
from onboard.storage.embedding import pack_embedding
from onboard.storage.readout import pack_readout, unpack_readout


def drawn(rows: int = 24, labels: int = 3, size: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    truth = np.arange(rows) % labels
    means = rng.normal(size=(labels, size))
    return means[truth] + 0.5 * rng.normal(size=(rows, size)), np.eye(labels)[truth]


def alone(count: int) -> list[np.ndarray]:
    return [np.array([row]) for row in range(count)]


def test_predictions_without_a_group_are_those_of_a_regression_without_it() -> None:
    features, targets = drawn()
    groups = [np.arange(9), np.arange(9, 12), np.arange(12, 15), np.arange(15, 24)]  # of several sizes
    path = Path.of(features, targets, np.ones(24))
    predicted = path.without(groups, 0.3)
    for group in groups:
        rest = np.setdiff1d(np.arange(24), group)
        x, y = features[rest], targets[rest]
        solved = np.linalg.solve(x.T @ x + 0.3 * np.eye(x.shape[1]), x.T @ y)
        assert np.allclose(predicted[group], features[group] @ solved)


def test_a_row_is_not_judged_as_if_its_label_were_rarer_than_it_is() -> None:
    _, targets = drawn()
    fitted = fit_readout(np.zeros((24, 4)), targets, alone(24))  # without a row its label has 7 of 23, others 8
    np.testing.assert_allclose(fitted.probabilities, 1 / 3)


@pytest.mark.parametrize(("rows", "columns"), [(5, 12), (12, 5), (7, 7)])
def test_a_matrix_is_its_directions_times_its_singular_values(rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).normal(size=(rows, columns))
    x[2] = x[1]  # so that one direction is missing where there are no more rows than columns
    u, s, v = decomposed(x)
    np.testing.assert_allclose(u * s @ v.T, x, atol=1e-9)
    np.testing.assert_allclose(u.T @ u, np.eye(len(s)), atol=1e-8)
    np.testing.assert_allclose(s[::-1], np.linalg.svd(x, compute_uv=False)[: len(s)])
    assert len(s) == np.linalg.matrix_rank(x)


def test_a_row_that_counts_twice_is_as_good_as_two_rows() -> None:
    features, targets = drawn()
    counted = np.where(np.arange(24) < 6, 2.0, 1.0)
    twice = np.concatenate([np.arange(24), np.arange(6)])
    groups = [np.arange(start, 24, 4) for start in range(4)]
    both = [np.flatnonzero(np.isin(twice, group)) for group in groups]
    fitted = fit_readout(features, targets * counted[:, None], groups)
    repeated = fit_readout(features[twice], targets[twice], both)
    assert (fitted.ridge, fitted.sharpness) == (repeated.ridge, repeated.sharpness)
    assert np.allclose(fitted.readout.probabilities(features), repeated.readout.probabilities(features), atol=1e-3)
    assert np.allclose(fitted.probabilities, repeated.probabilities[:24])
    asked, own = features[:4] + 0.1, np.arange(2, 24)
    fewer = answers_after(features[own], (targets * counted[:, None])[own], asked, fitted)
    of_copies = np.flatnonzero(twice > 1)
    assert np.allclose(fewer, answers_after(features[twice][of_copies], targets[twice][of_copies], asked, fitted))


def test_it_learns_what_features_say_in_float16() -> None:
    features, targets = drawn()
    fitted = fit_readout(features, targets, alone(24))
    answers = fitted.readout.probabilities(features)
    assert (answers.argmax(1) == targets.argmax(1)).all()
    assert np.allclose(answers.sum(1), 1.0)
    assert fitted.readout.weights.dtype == np.float16
    assert (fitted.probabilities.argmax(1) == targets.argmax(1)).mean() > 0.9


def test_without_a_row_it_answers_what_was_predicted_without_it() -> None:
    features, targets = drawn()
    few, of_few = features[:7], targets[:7]  # too few to choose anything: ridge and sharpness are the usual ones
    predicted = fit_readout(few, of_few, alone(7)).probabilities[6]
    assert predicted.argmax() == of_few[6].argmax()


def test_one_row_a_label_is_enough() -> None:
    features, targets = drawn(3)
    answers = fit_readout(features, targets, []).readout.probabilities(features)
    assert (answers.argmax(1) == np.arange(3)).all()


def test_a_number_is_expected_of_buckets() -> None:
    rng = np.random.default_rng(3)
    roots, values = rng.normal(size=(60, 5)), np.linspace(0.0, 5.0, 21)
    features, numbers = roots * np.abs(roots), np.clip(2.5 + roots @ np.array([0.8, -0.4, 0.2, 0.0, 0.1]), 0, 5)
    targets = np.eye(21)[np.abs(values[None] - numbers[:, None]).argmin(1)]
    fitted = fit_readout(features, targets, alone(60), values=values)
    expected = fitted.readout.probabilities(features) @ values
    assert np.corrcoef(expected, numbers)[0, 1] > 0.98


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(broken: float) -> None:
    features, targets = drawn()
    readout = fit_readout(features, targets, alone(24)).readout
    features[3, 2] = broken
    with refused("features-not-finite"):
        fit_readout(features, targets, alone(24))
    with refused("features-not-finite"):
        readout.probabilities(features)


def test_a_label_without_a_row_is_refused() -> None:
    features, targets = drawn()
    with refused("label-without-training-row"):
        fit_readout(features, np.hstack([targets, np.zeros((24, 1))]), alone(24))


def test_of_more_features_the_first_are_taken_and_fewer_are_refused() -> None:
    readout = Readout(np.array([[1, 0, 0, 0], [0, 1, 0, 0]], dtype=np.float16), 1.0, np.zeros(2, dtype=np.float32))
    features = np.random.default_rng(0).normal(size=(3, 8))
    features[:, 4:] = np.nan  # of a pair, where the task takes single texts
    assert np.array_equal(readout.probabilities(features), readout.probabilities(features[:, :4]))
    with refused("readout-width-differs"):
        readout.probabilities(np.ones((3, 3)))


@pytest.mark.parametrize("pairs", [False, True])
def test_a_readout_of_before_takes_features_as_they_are_and_the_blocks_that_there_were(*, pairs: bool) -> None:
    blocks = np.random.default_rng(0).normal(size=(6, 5, 3))  # the last of either half was not there
    then = blocks[[0, 1, 3, 4]] if pairs else blocks[:2]
    side_by_side = np.concatenate(then, axis=1)
    weights = np.random.default_rng(1).normal(size=(2, side_by_side.shape[1])).astype(np.float16)
    stored = pack_readout(Readout(weights, 1.0, np.zeros(2, dtype=np.float32)), "sha256:a")
    answers = unpack_readout(stored, "sha256:a").probabilities(np.concatenate(blocks, axis=1))
    powers = np.exp(side_by_side @ weights.astype(np.float64).T)
    np.testing.assert_allclose(answers, powers / powers.sum(1, keepdims=True))


def test_a_few_large_features_do_not_say_everything() -> None:
    features, targets = drawn()
    noise = np.random.default_rng(2).normal(size=24) * 30
    fitted = fit_readout(np.hstack([features, noise[:, None]]), targets, alone(24))
    by_roots = fit_readout(features**2 * np.sign(features), targets, alone(24))
    assert (fitted.probabilities.argmax(1) == targets.argmax(1)).mean() > 0.8
    readout = by_roots.readout
    scores = features @ (readout.weights.astype(np.float64) * readout.scale).T + readout.bias
    powers = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(
        readout.probabilities(features**2 * np.sign(features)), powers / powers.sum(1, keepdims=True), rtol=1e-6
    )


def test_every_block_of_columns_says_as_much_as_any_other() -> None:
    features, targets = drawn(60)
    noise = np.random.default_rng(2).normal(size=features.shape)
    loud, groups = np.hstack([features, 1000 * noise]), alone(60)
    fitted = fit_readout(loud, targets, groups, blocks=2)
    halved = fit_readout(np.hstack([1e-3 * features, noise]), targets, groups, blocks=2)
    assert np.allclose(fitted.probabilities, halved.probabilities)
    asked = loud[:8] + 0.1
    by_all = answers_after(loud, targets, asked, fitted, blocks=2)
    assert np.allclose(by_all, fitted.readout.probabilities(asked), atol=2e-3)
    as_one = fit_readout(loud, targets, groups)
    assert mean_loss(fitted.probabilities, targets) < mean_loss(as_one.probabilities, targets) - 0.2
    silent = fit_readout(np.hstack([features, 0 * features]), targets, groups, blocks=2)
    assert np.isfinite(silent.probabilities).all()


def test_the_share_is_what_rows_want_and_none_where_it_does_not_pay() -> None:
    targets = np.eye(2)[np.arange(40) % 2]
    sure, unsure, wrong = 0.9 * targets + 0.05, np.full((40, 2), 0.5), 0.9 * targets[:, ::-1] + 0.05
    assert choose_share(unsure, sure, targets, 0.7) > 0.7
    assert choose_share(sure, wrong, targets, 0.7) == 0.0
    assert choose_share(sure[:2], wrong[:2], targets[:2], 0.7) == pytest.approx(0.65)  # two rows are no clear word
    assert choose_share(unsure[:0], sure[:0], targets[:0], 0.7) == 0.7
    assert np.allclose(blend(sure, wrong, 0.5), 0.5)


def test_the_more_rows_make_a_readout_the_more_of_the_answer_is_usually_its_own() -> None:
    features, targets = drawn(48)
    shares = [fit_readout(features[:rows], targets[:rows], alone(rows)).readout.share for rows in (4, 16, 32)]
    assert shares == [usual_share(4), usual_share(16), usual_share(32)]
    assert np.round(shares, 2).tolist() == [0.57, 0.84, 0.91]
    named = fit_readout(features[:16], targets[:16], alone(16), names=features[40 : 40 + targets.shape[1]])
    assert named.readout.share == usual_share(16)  # the labels' own words are no rows


def test_of_all_rows_it_answers_what_the_readout_does_and_of_others_what_they_say() -> None:
    features, targets = drawn(48)
    fitted = fit_readout(features[:32], targets[:32], alone(32))
    asked, truth = features[32:], targets[32:]
    by_all = answers_after(features[:32], targets[:32], asked, fitted)
    assert np.allclose(by_all, fitted.readout.probabilities(asked), atol=1e-3)  # the readout is in float16
    by_few = answers_after(features[:5], targets[[1, 2, 0, 1, 2]], asked, fitted)
    assert mean_loss(by_few, truth) > mean_loss(by_all, truth)


def test_it_is_made_of_rows_that_lack_a_label() -> None:
    features, targets = drawn()
    fitted = fit_readout(features, targets, alone(24))
    own = targets[:, 2] == 0
    answers = answers_after(features[own], targets[own], features, fitted)
    assert np.allclose(answers.sum(1), 1.0)
    assert (answers[own].argmax(1) == targets[own].argmax(1)).mean() > 0.9


def test_labels_in_another_order_have_the_same_answers() -> None:
    features, targets = drawn()
    readout = fit_readout(features, targets, alone(24)).readout
    turned = readout.of_labels([2, 0, 1])
    assert np.allclose(turned.probabilities(features), readout.probabilities(features)[:, [2, 0, 1]], rtol=1e-12)


def test_a_release_that_knows_no_roots_finds_no_weights_to_answer_wrongly_with() -> None:
    features, targets = drawn()
    packed = pack_readout(fit_readout(features, targets, alone(24)).readout, "sha256:a")
    assert sorted(load(packed)) == ["bias", "root_weights"]
    assert unpack_readout(packed, "sha256:a").of_roots


def test_its_file_holds_it_and_is_pinned_to_its_base() -> None:
    features, targets = drawn()
    readout = fit_readout(features, targets, alone(24)).readout
    packed = pack_readout(readout, "sha256:a")
    read = unpack_readout(packed, "sha256:a")
    assert np.array_equal(read.probabilities(features), readout.probabilities(features))
    assert (read.scale, read.share) == (readout.scale, readout.share)
    assert len(packed) < 1024
    with refused("readout-of-other-base"):
        unpack_readout(packed, "sha256:b")


@pytest.mark.parametrize("content", [b"", b"no readout", pack_embedding(np.zeros(3), {})])
def test_other_bytes_are_no_readout(content: bytes) -> None:
    with refused("readout-unreadable"):
        unpack_readout(content, "sha256:a")


def test_a_file_of_numbers_that_are_not_finite_is_damaged() -> None:
    broken = Readout(np.full((2, 3), np.nan, dtype=np.float16), 1.0, np.zeros(2, dtype=np.float32))
    with refused("readout-unreadable"):
        unpack_readout(pack_readout(broken, "sha256:a"), "sha256:a")


def test_words_of_labels_are_rows_of_them_unless_rows_left_out_are_better_without() -> None:
    rng, (_, targets) = np.random.default_rng(2), drawn(300)
    kinds = rng.normal(size=(3, 40))
    features = kinds[targets.argmax(1)] + 3 * rng.normal(size=(300, 40))
    (features, asked), (targets, truth) = np.split(features, [12]), np.split(targets, [12])
    names = 0.2 * kinds  # like the rows of their label, but words say less
    fitted, named = (fit_readout(features, targets, alone(12), names=given) for given in (None, names))
    assert named.names is names
    assert len(named.probabilities) == 12
    assert mean_loss(named.readout.probabilities(asked), truth) < mean_loss(fitted.readout.probabilities(asked), truth)
    of_others = fit_readout(features, targets, alone(12), names=names[[1, 2, 0]])
    assert of_others.names is None
    assert np.array_equal(of_others.readout.probabilities(asked), fitted.readout.probabilities(asked))
    again = answers_after(features, targets, asked, named)
    assert np.allclose(again, named.readout.probabilities(asked), atol=2e-3)


def test_words_are_as_long_as_rows_and_have_nothing_of_what_parts_a_pair() -> None:
    features, targets = drawn(24)
    both, names = np.hstack([features, 5 + features]), 9 * features[:3]
    rows, of_rows = with_names(both, targets, names, blocks=2)
    mean = both.mean(0)
    length = np.sqrt(((features - mean[:12]) ** 2).sum(1).mean())
    assert rows.shape == (27, 24)
    assert np.array_equal(of_rows[24:], np.eye(3))
    assert np.sqrt(((rows[24:, :12] - mean[:12]) ** 2).sum(1).mean()) == pytest.approx(length)
    assert np.allclose(rows[24:, 12:], mean[12:])
