"""Rows and batches: like length, fair shares, a budget of tokens, and the encoder's own ids."""

from __future__ import annotations

import numpy as np
from curriculum_samples import TEXTS

from onboard.making.curriculum.batch import rows_within_budget
from onboard.making.curriculum.rows import Members, SharedRows
from onboard.making.curriculum.texts import TextStore
from onboard.model.encoding import TextEncoder


def test_a_row_of_stored_pieces_has_the_ids_that_the_encoder_gives(encoder: TextEncoder) -> None:
    store = TextStore(encoder)
    places = store.add(TEXTS[:60]).tolist()
    assert store.add([TEXTS[7], "A new one ."]).tolist() == [7, 60]
    assert [store[place] for place in places] == TEXTS[:60]
    for a, b in zip(places[:30], places[30:], strict=True):
        assert store.row([a]) == encoder.encode([(TEXTS[a], None)])[0]
        assert store.row([a], [b]) == encoder.encode([(TEXTS[a], TEXTS[b])])[0]
        many = [a, b] * 4  # longer than the limit
        joined = " ".join(TEXTS[place] for place in many)
        assert store.row(many) == encoder.encode([(joined, None)])[0]
        assert store.row(many, [b]) == encoder.encode([(joined, TEXTS[b])])[0]


def _rows(encoder: TextEncoder, classes: np.ndarray, balance: float) -> SharedRows:
    store = TextStore(encoder)
    left = store.add([" ".join(["film"] * (1 + number % 40)) + f" {number}" for number in range(len(classes))])
    return SharedRows(store, left, None, classes, 2, balance)


def test_a_rare_class_gets_a_fair_share_and_a_source_stays_as_it_is(encoder: TextEncoder) -> None:
    classes = (np.arange(800) % 16 == 0).astype(int)  # one in 16
    for balance, share in ((1.0, 1 / 16), (0.0, 1 / 2)):
        rows = _rows(encoder, classes, balance)
        drawn = [rows.classes[rows.draw(np.random.default_rng(step), 32)].mean() for step in range(150)]
        assert abs(np.mean(drawn) - share) < 0.03


def test_rows_of_a_batch_are_of_like_length_and_all_lengths_are_seen(encoder: TextEncoder) -> None:
    rows = _rows(encoder, np.arange(800) % 2, 1.0)
    lengths = [rows.lengths[rows.draw(np.random.default_rng(step), 16)] for step in range(200)]
    assert np.mean([np.ptp(batch) for batch in lengths]) < 8
    assert len(np.unique(np.concatenate(lengths))) > 35


def test_a_class_that_lengths_tell_apart_is_drawn_from_all_its_lengths() -> None:
    lengths = np.concatenate([np.arange(1, 101), np.arange(101, 201)])
    members = Members((lengths > 100).astype(int), lengths, 2)
    seen = []
    for step in range(300):
        rows, places = members.draw(np.random.default_rng(step), [0, 1], np.array([4, 4]))
        assert (np.sort(places) == [0] * 4 + [1] * 4).all()
        np.testing.assert_array_equal(places, lengths[rows] > 100)
        seen.append(lengths[rows])
    assert len(np.unique(np.concatenate(seen))) > 190


def test_long_texts_make_smaller_batches_of_eight_rows_at_least() -> None:
    assert rows_within_budget(np.full(48, 40), 48) == 48
    assert rows_within_budget(np.full(48, 20), 48) == 48
    assert rows_within_budget(np.full(48, 128), 48) == 15
    assert rows_within_budget(np.full(48, 1000), 48) == 8
    assert rows_within_budget(np.full(3, 1000), 48) == 3
    assert rows_within_budget(np.array([10] * 20 + [100] * 28), 48) == 20
