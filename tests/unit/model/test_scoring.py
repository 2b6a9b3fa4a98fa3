"""One decoder pass over the label trie equals scoring each label alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from onboard.errors import InputError
from onboard.model.encoding import pad
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie, log_probabilities_among

EOS = 1


def each_label_alone(engine: Engine, ids: list[list[int]], z: Tensor, sequences: list[list[int]]) -> Tensor:
    """Teacher forcing of every label through the stock model, the same local renormalisation: (B, K)."""
    input_ids, mask = pad(ids, 0)
    out = []
    with engine.attachment.using(engine.hypernetwork(z)):
        for sequence in sequences:
            decoder_input = torch.tensor([[0, *sequence[:-1]]]).expand(len(ids), -1)
            logits = engine.backbone(input_ids=input_ids, attention_mask=mask, decoder_input_ids=decoder_input).logits
            total = torch.zeros(len(ids))
            for step, token in enumerate(sequence):
                children = sorted({s[step] for s in sequences if len(s) > step and s[:step] == sequence[:step]})
                total = total + logits[:, step, children].log_softmax(-1)[:, children.index(token)]
            out.append(total)
    return torch.stack(out, 1)


def many_labels(count: int, seed: int = 0) -> list[list[int]]:
    """Labels of one to six tokens out of a small alphabet, so that long beginnings are shared."""
    rng = random.Random(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < count:
        drawn.add((*(rng.choice(range(10, 14)) for _ in range(rng.randint(1, 6))), EOS))
    labels = [list(label) for label in drawn]
    rng.shuffle(labels)
    return labels


def texts(count: int, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    return [[*(rng.randrange(3, 300) for _ in range(rng.randint(1, 12))), EOS] for _ in range(count)]


SHAPES = {
    "two labels with different first tokens": [[20, EOS], [21, EOS]],
    "two labels that part later": [[20, 30, 40, EOS], [20, 30, 41, 42, EOS]],
    "one word that goes on from another": [[20, EOS], [20, 30, EOS], [21, EOS]],
    "one label": [[20, 30, EOS]],
    "branches at several depths": [
        [5, 6, EOS],
        [5, 7, 8, EOS],
        [5, 7, 9, EOS],
        [6, 6, EOS],
        [6, 7, 5, 5, EOS],
        [7, EOS],
    ],
    "150 labels": many_labels(150),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_one_pass_over_the_trie_equals_each_label_alone(
    engine_of: Callable[[str], Engine], family: str, shape: str
) -> None:
    engine = engine_of(family)
    sequences, ids, z = SHAPES[shape], texts(3), torch.randn(1, 12)
    with torch.no_grad():
        scored = engine.log_probabilities(ids, z, [LabelTrie.build(sequences)])
        alone = each_label_alone(engine, ids, z, sequences)
    assert scored.shape == (3, len(sequences))
    torch.testing.assert_close(scored, alone, atol=1e-5, rtol=0)
    torch.testing.assert_close(scored.exp().sum(1), torch.ones(3), atol=1e-5, rtol=0)


def test_one_pass_over_the_trie_equals_each_label_alone_with_eager_attention(
    engine_of: Callable[[str], Engine],
) -> None:
    engine = engine_of("t5")
    engine.backbone.set_attn_implementation("eager")
    sequences, ids, z = SHAPES["branches at several depths"], texts(3), torch.randn(1, 12)
    with torch.no_grad():
        scored = engine.log_probabilities(ids, z, [LabelTrie.build(sequences)])
        torch.testing.assert_close(scored, each_label_alone(engine, ids, z, sequences), atol=1e-5, rtol=0)


def test_the_order_of_the_labels_does_not_change_their_scores(engine: Engine) -> None:
    sequences, ids, z = many_labels(20), texts(2), torch.randn(1, 12)
    with torch.no_grad():
        forward = engine.log_probabilities(ids, z, [LabelTrie.build(sequences)])
        backward = engine.log_probabilities(ids, z, [LabelTrie.build(sequences[::-1])])
    torch.testing.assert_close(forward, backward.flip(1), atol=1e-5, rtol=0)


def test_labels_with_different_first_tokens_need_one_decoder_position() -> None:
    assert LabelTrie.build(SHAPES["two labels with different first tokens"]).tokens.tolist() == [-1]
    assert LabelTrie.build([[token, 5, 5, EOS] for token in range(10, 160)]).tokens.shape == (1,)


def test_nodes_that_no_branch_lies_under_are_pruned() -> None:
    trie = LabelTrie.build(SHAPES["two labels that part later"])
    assert trie.tokens.tolist() == [-1, 20, 30]
    assert trie.edge_token.tolist() == [40, 41]


def test_the_decoder_runs_once_and_so_does_the_encoder(engine: Engine) -> None:
    runs: list[str] = []
    engine.backbone.encoder.register_forward_hook(lambda *_: runs.append("encoder"))
    engine.backbone.decoder.register_forward_hook(lambda *_: runs.append("decoder"))
    with torch.no_grad():
        engine.log_probabilities(texts(4), torch.randn(1, 12), [LabelTrie.build(many_labels(150))])
    assert runs == ["encoder", "decoder"]


def test_rows_with_different_tries_score_as_in_a_batch_of_their_own_task(engine: Engine) -> None:
    tries = [LabelTrie.build(sequences) for sequences in SHAPES.values()]
    ids, z = texts(9), torch.randn(len(tries), 12)
    rows = torch.tensor([3, 0, 5, 1, 4, 2, 0, 5, 3])
    with torch.no_grad():
        mixed = engine.log_probabilities(ids, z, tries, rows)
        for row, task in enumerate(rows.tolist()):
            alone = engine.log_probabilities([ids[row]], z[task : task + 1], [tries[task]])[0]
            torch.testing.assert_close(mixed[row, : tries[task].labels], alone, atol=1e-5, rtol=0)
            assert mixed[row, tries[task].labels :].eq(-torch.inf).all()


@pytest.mark.parametrize("chosen", [[0, 1], [4, 2], [3], [5, 0, 2, 1], [0, 1, 2, 3, 4, 5]])
def test_any_choice_among_the_labels_scores_as_a_trie_of_these_alone(engine: Engine, chosen: list[int]) -> None:
    sequences = SHAPES["branches at several depths"] + [[5, EOS], [9, EOS]]
    sequences = [list(label) for label in dict.fromkeys(map(tuple, sequences))][:6]
    ids, z = texts(5), torch.randn(1, 12, generator=torch.Generator().manual_seed(4))
    larger = LabelTrie.build(many_labels(12))
    generated = engine.hypernetwork(torch.cat([z, -z]))
    trie, rows = LabelTrie.build(sequences), torch.tensor([0, 0, 0, 0, 0, 1])
    logits = engine.edge_logits([*ids, ids[0]], generated, [trie, larger], rows)[:5]
    alone = engine.log_probabilities(ids, z, [LabelTrie.build([sequences[label] for label in chosen])])
    torch.testing.assert_close(log_probabilities_among(logits, trie, chosen), alone, atol=2e-5, rtol=0)


def test_gradients_are_finite_where_tries_of_different_sizes_are_padded(engine: Engine) -> None:
    tries = [LabelTrie.build(SHAPES["one label"]), LabelTrie.build(many_labels(30))]
    z = torch.randn(2, 12, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        engine.log_probabilities(texts(2), z, tries, torch.tensor([0, 1]))[:, 0].sum().backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
    assert z.grad[0].eq(0).all()  # a single label is certain whatever the embedding
    assert z.grad[1].ne(0).any()


@pytest.mark.parametrize(
    "sequences",
    [[], [[5, EOS], []], [[5, EOS], [5, EOS]], [[5], [5, 6]], [[5, 6], [9], [5]]],
    ids=["none", "an empty one", "two alike", "a beginning", "a beginning further on"],
)
def test_labels_that_cannot_be_told_apart_are_refused(sequences: list[list[int]]) -> None:
    with pytest.raises(InputError):
        LabelTrie.build(sequences)


def test_many_labels_share_beginnings() -> None:
    ordered = sorted(SHAPES["150 labels"])
    assert len(ordered) == 150
    assert any(left[:2] == right[:2] for left, right in pairwise(ordered))
