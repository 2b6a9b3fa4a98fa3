"""What a labelled dataset looks like to the bare backbone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from onboard.bases.fingerprints import Fingerprints
from onboard.model.batch import Batch
from onboard.model.engine import Engine
from onboard.model.fingerprint import label_features, raw_fingerprint
from onboard.model.projections import Projections

SIZE = 12
TEXTS = ["w1 a b", "w2 c", "w1 d e f g h i j", "w2 k l", "w1 m", "w2 n o p q", "w1", "w2 r s"]
ANSWERS = [0, 1] * 4


def found(
    engine: Engine, texts: Sequence[str], answers: Sequence[int], words: Sequence[str], batch: int, size: int = SIZE
) -> np.ndarray:
    ids, targets = engine.encoder.encode([(text, None) for text in texts]), np.eye(len(words), dtype=np.float32)
    batches = [
        Batch(ids[start : start + batch], engine.trie(words), targets[answers[start : start + batch]])
        for start in range(0, len(ids), batch)
    ]
    return raw_fingerprint(engine, batches, projections(engine, size))


def projections(engine: Engine, size: int = SIZE) -> Projections:
    return Projections.drawn(engine.backbone.config.d_model, size, 0)


@pytest.mark.parametrize("batch", [1, 3, 8])  # alone no text is padded
def test_order_batches_and_padding_change_nothing(engine: Engine, batch: int) -> None:
    whole = found(engine, TEXTS, ANSWERS, ("a", "b c"), 8)
    order = [5, 7, 2, 0, 3, 6, 4, 1]
    texts, answers = [TEXTS[row] for row in order], [ANSWERS[row] for row in order]
    assert (whole.shape, whole.dtype) == ((SIZE,), np.float32)
    np.testing.assert_allclose(found(engine, texts, answers, ("a", "b c"), batch), whole, atol=1e-5, rtol=1e-5)


def test_it_is_in_the_labels_and_not_in_their_order(engine: Engine) -> None:
    first, swapped = (found(engine, TEXTS, answers, ("a", "b"), 8) for answers in (ANSWERS, ANSWERS[::-1]))
    half = SIZE // 2
    np.testing.assert_allclose(swapped[:half], -first[:half], atol=1e-5)  # every direction goes with the other label
    np.testing.assert_allclose(swapped[half:], first[half:], atol=1e-5)  # texts and words are what they were
    assert np.abs(first[:half]).max() > 1e-2
    np.testing.assert_allclose(found(engine, TEXTS, ANSWERS[::-1], ("b", "a"), 8), first, atol=1e-5)


def test_it_depends_on_neither_hypernetwork_nor_adapters(engine: Engine, hypernetwork_for: Callable[..., Any]) -> None:
    before = found(engine, TEXTS, ANSWERS, ("a", "b"), 3)
    engine.hypernetwork = hypernetwork_for(engine.backbone, seed=9)
    with torch.no_grad(), engine.attachment.using(engine.hypernetwork(torch.randn(1, SIZE))):
        assert found(engine, TEXTS, ANSWERS, ("a", "b"), 3).tobytes() == before.tobytes()


def test_a_model_in_training_drops_nothing_for_it_and_stays_in_training(engine: Engine) -> None:
    assert engine.backbone.config.dropout_rate > 0
    still = found(engine, TEXTS, ANSWERS, ("a", "b"), 3)
    engine.backbone.train()
    assert found(engine, TEXTS, ANSWERS, ("a", "b"), 3).tobytes() == still.tobytes()
    assert all(module.training for module in engine.backbone.modules())


def test_it_is_taken_on_the_projections_that_are_given(engine: Engine) -> None:
    ids = engine.encoder.encode([(text, None) for text in TEXTS])
    batch = Batch(ids, engine.trie(("a", "b")), np.eye(2, dtype=np.float32)[ANSWERS])
    given = projections(engine)
    zero = given._replace(left=np.zeros_like(given.left))
    first, other = raw_fingerprint(engine, [batch], given), raw_fingerprint(engine, [batch], zero)
    half = SIZE // 2
    np.testing.assert_array_equal(other[:half], 0.0)
    np.testing.assert_array_equal(other[half:], first[half:])


def test_a_label_is_the_tokens_that_tell_it_from_the_others(engine: Engine) -> None:
    words = torch.randn(400, 4)
    token = {word: words[engine.encoder.label_ids(word)[0]] for word in ("a", "b", "c", "w1")}
    expected = torch.stack([(token["a"] + token["b"]) / 2, (token["a"] + token["c"]) / 2, token["w1"]])
    torch.testing.assert_close(label_features(engine.trie(["a b w2", "a c w3", "w1 w2"]), words), expected)


def test_like_tasks_are_nearer_than_unlike_ones(engine: Engine) -> None:
    """The same question about other texts, beside other questions about like texts."""
    rng = np.random.default_rng(0)

    def task(marks: tuple[str, str], words: tuple[str, str]) -> np.ndarray:
        answers = rng.integers(2, size=200).tolist()
        texts = [" ".join(rng.permutation([*rng.choice(list("defghijk"), 3), marks[answer]])) for answer in answers]
        return found(engine, texts, answers, words, 24, 64)

    kinds = [(("w1", "w2"), ("a", "b")), (("w3", "w4"), ("a", "b")), (("w2", "w1"), ("a", "b")),
             (("w1", "w2"), ("w8", "w9")), (("w5", "w6"), ("w8", "w9"))]  # fmt: skip
    known = Fingerprints.from_raw(projections(engine, 64), {str(kind): task(*kind) for kind in kinds})
    for kind in kinds:
        assert known.nearest(known.scaled(task(*kind)), known.of, 1) == [str(kind)]
