"""A larger backbone computes what the smaller one computed, and all of it learns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.refusals import refused
from transformers import T5Config, T5ForConditionalGeneration

from onboard.making.pretrain.grow import grown
from onboard.making.pretrain.recipe import Growth

IDS, ANSWERS = torch.tensor([[5, 9, 3, 1], [7, 1, 0, 0]]), torch.tensor([[0, 4, 6], [0, 8, 1]])
SIZES = {"d_model": 40, "d_ff": 48, "num_heads": 6, "num_layers": 4, "num_decoder_layers": 3}


def tiny_t5(feed_forward: str = "gelu") -> Any:
    """Weights of usual size, of which nothing is zero."""
    torch.manual_seed(1)
    config = T5Config(
        vocab_size=11, d_model=32, d_ff=24, d_kv=8, num_layers=2, num_decoder_layers=1, num_heads=4, dropout_rate=0.0,
        feed_forward_proj=feed_forward, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        tie_word_embeddings=True,
    )  # fmt: skip
    backbone = T5ForConditionalGeneration(config).requires_grad_(False).eval()
    for parameter in backbone.parameters():
        parameter.add_(torch.randn_like(parameter) * 0.1)
    return backbone


def logits(backbone: Any) -> torch.Tensor:
    answered: torch.Tensor = backbone(input_ids=IDS, attention_mask=IDS.ne(0), decoder_input_ids=ANSWERS).logits
    return answered


@pytest.mark.parametrize("growth", [{}, *({name: size} for name, size in SIZES.items()), SIZES], ids=str)
@pytest.mark.parametrize(("feed_forward", "scaled"), [("gelu", True), ("gelu", False), ("gated-gelu", True)])
def test_it_begins_as_what_it_grew_from(growth: dict[str, int], feed_forward: str, scaled: bool) -> None:
    backbone = tiny_t5(feed_forward)
    backbone.config.scale_decoder_outputs = backbone.decoder.config.scale_decoder_outputs = scaled
    larger = grown(backbone, Growth(**growth), seed=0)
    for field, size in growth.items():
        assert getattr(larger.config, field) == size > getattr(backbone.config, field)
    torch.testing.assert_close(logits(larger), logits(backbone), rtol=1e-4, atol=1e-5)
    assert not any(parameter.requires_grad for parameter in larger.parameters())


def test_a_few_steps_move_every_new_weight() -> None:
    larger = grown(tiny_t5(), Growth(**SIZES), seed=0)
    begun = {name: parameter.clone() for name, parameter in larger.named_parameters()}
    larger.requires_grad_(True)
    optimiser = torch.optim.AdamW(larger.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(4):  # what is written first, then what reads it
        optimiser.zero_grad()
        logits(larger).logsumexp(-1).square().mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    unmoved = {
        name: float((parameter == begun[name]).float().mean())
        for name, parameter in larger.named_parameters() if "shared" not in name
    }  # fmt: skip
    still = {name: share for name, share in unmoved.items() if share > 0 and "relative_attention_bias" not in name}
    assert not still


def test_the_same_seed_draws_the_same() -> None:
    one, again, other = (grown(tiny_t5(), Growth(d_model=40), seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_what_would_shrink_is_refused_by_name() -> None:
    backbone = tiny_t5()
    with refused("backbone-cannot-shrink") as caught:
        grown(backbone, Growth(num_layers=backbone.config.num_layers - 1), seed=0)
    assert caught.value.data["field"] == "backbone.grow.num_layers"
