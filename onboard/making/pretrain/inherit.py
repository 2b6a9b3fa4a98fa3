"""Initialize the backbone from the teacher: convert a BERT to a T5 by least squares, one matrix after another.

A BERT layer normalizes its sum and has biases and absolute positions; a T5 layer normalizes its input and has neither.
There is no exact conversion. But every T5 matrix can be the ridge solution that maps the student's states, on a sample
of texts, to the teacher's states at the same place. Later matrices compensate for the errors of earlier ones.
Distillation (distill.py) then starts from a student that already agrees with the teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from onboard.making.pretrain.recipe import BackboneShape
from onboard.making.pretrain.teacher import Teacher
from onboard.making.pretrain.tokenizer import EOS_ID, PAD_ID
from onboard.model.encoding import pad

_BATCH: Final = 48
_RIDGE, _OUTPUT_RIDGE, _READER_RIDGE = 1e-3, 1e-4, 1e-2  # shares of the mean diagonal
_POSITIONS: Final = 24  # T5 has no absolute positions: its embeddings include the mean of the first ones
_SMALLEST: Final = 1e-6


def new_backbone(shape: BackboneShape, teacher: Teacher) -> Any:
    """Return a T5 of the teacher's width, heads and depth: standard transformers code, tied head, GELU feed-forward."""
    from transformers import T5Config, T5ForConditionalGeneration

    taught = teacher.model.config
    config = T5Config(
        vocab_size=shape.vocabulary_size,
        d_model=taught.hidden_size,
        d_ff=shape.d_ff,
        d_kv=taught.hidden_size // taught.num_attention_heads,
        num_heads=taught.num_attention_heads,
        num_layers=taught.num_hidden_layers,
        num_decoder_layers=shape.decoder_layers,
        feed_forward_proj="gelu",
        dropout_rate=0.0,
        decoder_start_token_id=PAD_ID,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        tie_word_embeddings=True,
    )
    return T5ForConditionalGeneration(config).eval()


def with_start(ids: Tensor, mask: Tensor, to_teacher: Tensor, start_id: int) -> tuple[Tensor, Tensor]:
    """Return the student's ids (B, S) as the teacher's, after its start token: ids and mask (B, S + 1)."""
    start = torch.full((len(ids), 1), start_id)
    return torch.cat([start, to_teacher[ids]], 1), torch.cat([mask[:, :1], mask], 1)


class _Batch(NamedTuple):
    """Some texts, with all inputs and outputs of one layer.

    `real` (B, S) marks non-padding tokens, `hidden` (B, S + 1) the teacher's mask.
    """

    ids: Tensor
    real: Tensor
    hidden: Tensor
    taught_ids: Tensor


class _Layer(NamedTuple):
    """The outputs of one teacher layer for one batch; all except `whole` without the start token."""

    whole: Tensor  # (B, S + 1, h)
    query: Tensor
    key: Tensor
    value: Tensor
    middle: Tensor  # after the attention's norm
    inner: Tensor  # before the activation
    output: Tensor
    middle_spread: Tensor  # standard deviation that the norm removes
    output_spread: Tensor


@dataclass
class _Inheritance:
    """The state of the encoder's conversion.

    `streams` are the student's residual streams and `taught` the teacher's states. `scale` is the intended ratio of the
    student's stream to the teacher's normalized states.
    """

    batches: list[_Batch]
    streams: list[Tensor]
    taught: list[Tensor]
    heads: int
    scale: float = 1.0

    def flat(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return all non-padding tokens (N, …)."""
        return torch.cat([tensor[batch.real] for tensor, batch in zip(tensors, self.batches, strict=True)])

    def normed(self) -> list[Tensor]:
        """Return the streams after a T5 norm of unit weight."""
        return [stream * torch.rsqrt(stream.square().mean(-1, keepdim=True) + _SMALLEST) for stream in self.streams]


@torch.no_grad()
def inherit_encoder(
    backbone: Any, teacher: Teacher, to_teacher: Tensor, sequences: Sequence[Sequence[int]], say: Callable[[str], None]
) -> None:
    """Set embeddings and encoder.

    Args:
        backbone: from `new_backbone`.
        to_teacher: the teacher's token id of each of our tokens (V,).
        sequences: token ids of a few thousand texts.
        say: receives the explained share of the teacher's variance for each layer.
    """
    embeddings = teacher.model.embeddings
    position = embeddings.position_embeddings.weight[1:_POSITIONS].mean(0)
    joined = embeddings.word_embeddings.weight[to_teacher] + position + embeddings.token_type_embeddings.weight[0]
    backbone.shared.weight.copy_(embeddings.LayerNorm(joined))
    backbone.shared.weight[PAD_ID] = 0.0
    ordered = sorted(sequences, key=len)
    batches = [_batch(ordered[start : start + _BATCH], to_teacher, teacher) for start in range(0, len(ordered), _BATCH)]
    state = _Inheritance(
        batches,
        [backbone.shared.weight[batch.ids] for batch in batches],
        [embeddings(batch.taught_ids) for batch in batches],
        backbone.config.num_heads,
    )
    for number, (block, layer) in enumerate(zip(backbone.encoder.block, teacher.model.encoder.layer, strict=True)):
        _inherit_layer(block, layer, state)
        target = state.flat([taught[:, 1:] for taught in state.taught]) * state.scale
        explained = 1 - (state.flat(state.streams) - target).square().sum() / (target - target.mean(0)).square().sum()
        say(f"inherit: layer {number + 1} explains {explained:.2f} of the teacher's variance")
    for block in backbone.encoder.block:
        _balance(block.layer[0].SelfAttention)


def _batch(sequences: Sequence[Sequence[int]], to_teacher: Tensor, teacher: Teacher) -> _Batch:
    ids, mask = pad(sequences, PAD_ID)
    taught_ids, taught_mask = with_start(ids, mask, to_teacher, teacher.tokenizer.cls_token_id)
    return _Batch(ids, mask.bool(), ~taught_mask.bool(), taught_ids)


def _inherit_layer(block: Any, layer: Any, state: _Inheritance) -> None:
    attention, feed_forward = block.layer[0].SelfAttention, block.layer[1].DenseReluDense
    taught = [_forward(layer, batch, y, state.heads) for batch, y in zip(state.batches, state.taught, strict=True)]
    normed = state.normed()
    inputs = state.flat(normed)
    width = inputs.shape[1] // state.heads
    _fit(attention.q, inputs, state.flat([batch.query for batch in taught]) * width**-0.5)  # T5 does not scale queries
    _fit(attention.k, inputs, state.flat([batch.key for batch in taught]))
    _fit(attention.v, inputs, state.flat([batch.value for batch in taught]))
    contexts = [
        _attend(attention.q(x), attention.k(x), attention.v(x), ~batch.real, state.heads)
        for x, batch in zip(normed, state.batches, strict=True)
    ]
    state.scale *= _growth(layer.attention.output.LayerNorm, state.flat([batch.middle_spread for batch in taught]))
    _add(state, attention.o, contexts, [batch.middle for batch in taught], _RIDGE)

    normed = state.normed()
    inner = state.flat([batch.inner for batch in taught])
    strongest = _strongest(inner, layer.output.dense.weight, feed_forward.wi.out_features)
    _fit(feed_forward.wi, state.flat(normed), inner[:, strongest])
    state.scale *= _growth(layer.output.LayerNorm, state.flat([batch.output_spread for batch in taught]))
    activated = [functional.gelu(feed_forward.wi(x)) for x in normed]
    _add(state, feed_forward.wo, activated, [batch.output for batch in taught], _OUTPUT_RIDGE)
    state.taught = [batch.whole for batch in taught]


def _add(state: _Inheritance, last: nn.Linear, inputs: list[Tensor], targets: list[Tensor], ridge: float) -> None:
    """Fit a sublayer's last matrix so that the streams become the target states times the scale, and add it."""
    missing = [state.scale * goal - stream for goal, stream in zip(targets, state.streams, strict=True)]
    _fit(last, state.flat(inputs), state.flat(missing), ridge)
    state.streams = [stream + last(x) for stream, x in zip(state.streams, inputs, strict=True)]


def _fit(linear: nn.Linear, inputs: Tensor, outputs: Tensor, ridge: float = _RIDGE) -> None:
    """Set weight = argmin ‖inputs · weightᵀ − outputs‖² + ridge, solved in float64."""
    x, y = inputs.double(), outputs.double()
    gram = x.T @ x
    gram += ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=torch.float64)
    linear.weight.copy_(torch.linalg.solve(gram, x.T @ y).T)


def _strongest(inner: Tensor, outgoing: Tensor, count: int) -> Tensor:
    """Return indices (count,) of the hidden units with the largest effect on the output."""
    strength = functional.gelu(inner).var(0) * outgoing.square().sum(0)
    return strength.topk(count).indices.sort().values


def _growth(norm: nn.LayerNorm, spread: Tensor) -> float:
    """Return the growth factor of the stream that replaces the teacher's rescaling of its old part."""
    return float(spread.mean() / norm.weight.mean())


def _attend(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, heads: int) -> Tensor:
    query, key, value = (
        projected.view(*projected.shape[:2], heads, -1).transpose(1, 2) for projected in (query, key, value)
    )
    visible = ~hidden[:, None, None, :]
    context = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, scale=1.0)  # (B, H, S, d)
    return context.transpose(1, 2).flatten(2)


def _forward(layer: Any, batch: _Batch, y: Tensor, heads: int) -> _Layer:
    """Compute one layer of the teacher and keep all intermediate states."""
    places = layer.attention.self
    query, key, value = places.query(y), places.key(y), places.value(y)
    context = _attend(query * (y.shape[-1] // heads) ** -0.5, key, value, batch.hidden, heads)
    first = layer.attention.output.dense(context) + y
    middle = layer.attention.output.LayerNorm(first)
    inner = layer.intermediate.dense(middle)
    second = layer.output.dense(functional.gelu(inner)) + middle
    output = layer.output.LayerNorm(second)
    states = (query, key, value, middle, inner, output, first.std(-1), second.std(-1))
    return _Layer(output, *(state[:, 1:] for state in states))


def _balance(attention: Any) -> None:
    """Rescale queries and keys to similar magnitude without changing their products."""
    ratio = (attention.k.weight.square().mean() / attention.q.weight.square().mean()) ** 0.25
    attention.q.weight.mul_(ratio)
    attention.k.weight.div_(ratio)


@torch.no_grad()
def inherit_reader(backbone: Any, words: Sequence[int], seed: int) -> None:
    """Set the decoder so that its first state is the mean of the encoder's states, mapped to the embedding space.

    So a text scores high for words of similar meaning, before any training. Other weights are small noise.

    Args:
        backbone: with a distilled encoder.
        words: token ids of whole words.
    """
    torch.manual_seed(seed)
    states = []
    for start in range(0, len(words), 256):
        ids = torch.tensor(words[start : start + 256])[:, None]
        with_end = torch.cat([ids, torch.full_like(ids, EOS_ID)], 1)
        states.append(backbone.encoder(input_ids=with_end).last_hidden_state.mean(1))
    embeddings = backbone.shared.weight[list(words)]
    turn = nn.Linear(backbone.config.d_model, backbone.config.d_model, bias=False)
    _fit(turn, torch.cat(states), embeddings - embeddings.mean(0), _READER_RIDGE)
    for number, block in enumerate(backbone.decoder.block):
        self_attention, cross, feed_forward = (
            block.layer[0].SelfAttention,
            block.layer[1].EncDecAttention,
            block.layer[2],
        )
        for attention in (self_attention, cross):
            for name, deviation in (("q", 0.01), ("k", 0.03), ("v", 0.03), ("o", 0.01)):
                getattr(attention, name).weight.normal_(0.0, deviation)
        cross.v.weight.copy_(torch.eye(*cross.v.weight.shape))
        if number == 0:
            cross.o.weight.copy_(turn.weight)
        feed_forward.DenseReluDense.wi.weight.normal_(0.0, 0.04)
        feed_forward.DenseReluDense.wo.weight.normal_(0.0, 0.01)
    # the decoder starts with the embedding of padding, and a norm of zeros would be unstable
    backbone.shared.weight[PAD_ID].normal_(0.0, float(embeddings.std()))
