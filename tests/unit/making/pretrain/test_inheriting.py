"""A T5 that inherits a BERT: its encoder says what the teacher says, its decoder reads words off it, untrained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_teacher import make_teacher
from transformers import AutoTokenizer

from onboard.making.pretrain.inherit import inherit_encoder, inherit_reader, new_backbone, with_start
from onboard.making.pretrain.recipe import BackboneShape
from onboard.making.pretrain.teacher import Teacher, pooled
from onboard.making.pretrain.tokenizer import EOS_ID, PAD_ID, inherit_tokenizer, teacher_pieces
from onboard.model.encoding import TextEncoder, pad


@dataclass(frozen=True)
class Heir:
    """A student with its teacher."""

    backbone: Any
    teacher: Teacher
    tokenizer: Any
    to_teacher: torch.Tensor
    said: list[str]

    def sequences(self, texts: Sequence[str]) -> list[list[int]]:
        ids = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return [[*sequence, EOS_ID] for sequence in ids]

    def inherit(self, texts: Sequence[str]) -> None:
        inherit_encoder(self.backbone, self.teacher, self.to_teacher, self.sequences(texts), self.said.append)

    @torch.no_grad()
    def agreement(self, texts: Sequence[str]) -> float:
        """Mean cosine of the student's pooled states and the teacher's."""
        ids, mask = pad(self.sequences(texts), PAD_ID)
        ours = pooled(self.backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
        taught, seen = with_start(ids, mask, self.to_teacher, self.teacher.tokenizer.cls_token_id)
        theirs = pooled(self.teacher.model(input_ids=taught, attention_mask=seen).last_hidden_state, seen)
        return float((ours * theirs).sum(-1).mean())


@pytest.fixture
def heir_of(words: list[str], texts: list[str], tmp_path: Path) -> Callable[..., Heir]:
    """A student that has not inherited yet, of a tiny teacher; `d_ff` of the student."""

    def make(d_ff: int, **teacher_sizes: Any) -> Heir:
        teacher = make_teacher(words, **teacher_sizes)
        inherit_tokenizer(texts, teacher.tokenizer, 220, tmp_path)
        tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path)
        shape = BackboneShape(vocabulary_size=len(tokenizer), d_ff=d_ff, decoder_layers=2, max_tokens=32)
        to_teacher = teacher.ids_of(teacher_pieces(tokenizer, teacher.tokenizer))
        torch.manual_seed(1)
        return Heir(new_backbone(shape, teacher), teacher, tokenizer, to_teacher, [])

    return make


def explained(said: Sequence[str]) -> list[float]:
    return [float(line.split("explains ")[1].split()[0]) for line in said]


def test_a_student_of_the_teachers_width_has_its_heads_and_depth(heir_of: Callable[..., Heir]) -> None:
    config = heir_of(24).backbone.config
    assert (config.d_model, config.num_heads, config.d_kv, config.num_layers) == (16, 2, 8, 2)
    assert (config.d_ff, config.num_decoder_layers, config.dropout_rate) == (24, 2, 0.0)
    assert config.decoder_start_token_id == config.pad_token_id == PAD_ID
    assert config.tie_word_embeddings


def test_an_heir_agrees_with_its_teacher_where_a_random_t5_does_not(
    heir_of: Callable[..., Heir], texts: list[str]
) -> None:
    heir = heir_of(24)  # three quarters of the teacher's hidden units; its norms and biases are anything but plain
    before = heir.agreement(texts[300:])
    heir.inherit(texts[:300])
    assert before < 0.4
    assert heir.agreement(texts[300:]) > 0.9
    assert min(explained(heir.said)) > 0.7
    for block in heir.backbone.encoder.block:  # not the embeddings alone: the layers say it
        block.layer[0].SelfAttention.o.weight.data.zero_()
        block.layer[1].DenseReluDense.wo.weight.data.zero_()
    assert heir.agreement(texts[300:]) < 0.4


def test_with_all_hidden_units_and_plain_norms_the_heir_is_close(
    heir_of: Callable[..., Heir], texts: list[str]
) -> None:
    heir = heir_of(32, strength=0.2, spread=0.0)
    heir.inherit(texts[:300])
    assert len(heir.said) == 2
    assert min(explained(heir.said)) > 0.96
    assert heir.agreement(texts[300:]) > 0.95


def test_the_strongest_hidden_units_are_kept(heir_of: Callable[..., Heir], texts: list[str]) -> None:
    heir = heir_of(24, strength=0.2, spread=0.0)
    for layer in heir.teacher.model.encoder.layer:  # as if the teacher had no more than 24
        layer.output.dense.weight.data[:, ::4] = 0.0
    heir.inherit(texts[:300])
    assert min(explained(heir.said)) > 0.96


def test_queries_and_keys_are_of_like_size(heir_of: Callable[..., Heir], texts: list[str]) -> None:
    heir = heir_of(24)
    heir.inherit(texts[:100])
    for block in heir.backbone.encoder.block:
        attention = block.layer[0].SelfAttention
        torch.testing.assert_close(attention.q.weight.square().mean(), attention.k.weight.square().mean())


def test_a_text_of_one_word_scores_that_word_highest_before_anything_is_trained(
    heir_of: Callable[..., Heir], words: list[str], texts: list[str]
) -> None:
    from onboard.model.engine import Engine

    heir = heir_of(128, strength=0.1, spread=0.0, width=64)
    heir.inherit(texts)
    engine = Engine(heir.backbone, None, TextEncoder(heir.tokenizer, "|", 32))  # type: ignore[arg-type]  # bare
    ids, trie = engine.encoder.encode([(word, None) for word in words]), engine.trie(words)
    with torch.no_grad():
        before = engine.bare_log_probabilities(ids, [trie]).argmax(1)
        inherit_reader(heir.backbone, heir.tokenizer.convert_tokens_to_ids(words), seed=0)
        after = engine.bare_log_probabilities(ids, [trie]).argmax(1)
    right = torch.arange(len(words))
    assert (before == right).float().mean() < 0.2
    assert torch.equal(after, right)


def test_the_reader_depends_on_its_seed_alone(heir_of: Callable[..., Heir], words: list[str]) -> None:
    heir = heir_of(24)
    known = heir.tokenizer.convert_tokens_to_ids(words)
    states = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed + 77)
        inherit_reader(heir.backbone, known, seed)
        states.append({name: value.clone() for name, value in heir.backbone.decoder.state_dict().items()})
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(torch.equal(states[0][name], states[2][name]) for name in states[0])
    assert heir.backbone.shared.weight[PAD_ID].abs().sum() > 0  # what the decoder starts from
