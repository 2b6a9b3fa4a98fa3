"""What a readout sees: means of three layers, and of a pair what parts its texts, whatever else is in the batch."""

from __future__ import annotations

import pytest
import torch

from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.model.readout_features import BLOCKS_OF_TEXTS
from onboard.statistics.blocks import BLOCKS

PAIRS = [("a good film", None), ("bad plot", "the film was great"), ("it is sad", "it"), ("not", "yes and no and yes")]


def blocks_of(engine: Engine, pairs: list[tuple[str, str | None]]) -> torch.Tensor:
    """(n, 6, h)"""
    with torch.inference_mode():
        features = engine.readout_features(engine.encoder.encode(pairs))
    return features.view(len(pairs), BLOCKS, -1)


def test_blocks_are_means_over_tokens_and_differences_of_the_texts_of_a_pair(tiny_engine: Engine) -> None:
    seen = blocks_of(tiny_engine, PAIRS)
    for pair, blocks in zip(PAIRS, seen, strict=True):
        (ids,) = tiny_engine.encoder.encode([pair])
        with torch.inference_mode(), tiny_engine.attachment.bare():
            states = tiny_engine.backbone.encoder(input_ids=torch.tensor([ids]), output_hidden_states=True)
        layers = [states.hidden_states[place][0] for place in (-1, len(states.hidden_states) // 2, -2)]
        for layer, mean, apart in zip(layers, blocks[:3], blocks[3:], strict=True):
            torch.testing.assert_close(mean, layer.mean(0), atol=1e-5, rtol=0)
            expected = torch.zeros_like(mean)
            if pair[1] is not None:
                first = len(tiny_engine.encoder.word_ids(pair[0]))
                second = first + len(tiny_engine.encoder.separator)
                expected = layer[second:-1].mean(0) - layer[:first].mean(0)
            torch.testing.assert_close(apart, expected, atol=1e-5, rtol=0)


def test_the_first_block_is_what_fingerprints_see(tiny_engine: Engine) -> None:
    ids = tiny_engine.encoder.encode(PAIRS)
    with torch.inference_mode():
        seen = tiny_engine.encode_features(ids)
    width = seen.shape[1]
    torch.testing.assert_close(tiny_engine.readout_features(ids)[:, :width], seen, atol=1e-6, rtol=0)
    features = bare_features(tiny_engine, ids)
    assert features.shape == (len(PAIRS), BLOCKS * width)
    assert not features[0, BLOCKS_OF_TEXTS * width :].any()


@pytest.mark.parametrize("pair", [("", "film"), ("film", "")])
def test_an_empty_text_of_a_pair_is_no_fault(tiny_engine: Engine, pair: tuple[str, str]) -> None:
    seen = blocks_of(tiny_engine, [pair, PAIRS[1]])
    assert torch.isfinite(seen).all()


def test_turning_a_pair_turns_the_sign_of_what_parts_it_where_order_is_all(tiny_engine: Engine) -> None:
    there, back = blocks_of(tiny_engine, [("good", "bad"), ("bad", "good")])
    assert torch.nn.functional.cosine_similarity(there[3:], back[3:], dim=1).max() < 0
