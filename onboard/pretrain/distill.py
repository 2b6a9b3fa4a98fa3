"""Stages `distill` and `read`: the encoder learns the teacher's meaning, the decoder learns to read the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from onboard.model.encoding import pad
from onboard.pretrain.batches import LengthBuckets
from onboard.pretrain.recipe import BackboneShape
from onboard.pretrain.teacher import SIZE, Teacher
from onboard.pretrain.topics import Topics

_SIMILARITY_SHARPNESS = 5.0
_PAIR_TOKENS = 60
_PAD_ID = 0  # of the tokenizer that `train_tokenizer` makes


def new_backbone(shape: BackboneShape) -> Any:
    """A T5 with random weights in the recipe's shape: stock transformers code, tied head, ReLU feed-forward."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=shape.vocabulary_size,
        d_model=shape.d_model,
        d_ff=shape.d_ff,
        d_kv=shape.d_kv,
        num_layers=shape.encoder_layers,
        num_decoder_layers=shape.decoder_layers,
        num_heads=shape.heads,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=True,
    )
    return T5ForConditionalGeneration(config)


@torch.no_grad()
def token_vectors(tokenizer: Any, teacher: Teacher, d_model: int) -> torch.Tensor:
    """Initial token embeddings (V, d_model): the teacher's vector of each piece's text, PCA, unit variance."""
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    vectors = torch.from_numpy(teacher.vectors([piece.replace("▁", " ").strip() or "." for piece in pieces])).float()
    centred = vectors - vectors.mean(0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    projected = centred @ directions[:d_model].T  # (V, d_model)
    scaled: torch.Tensor = projected / projected.std()
    return scaled


@dataclass(frozen=True)
class Distillation:
    """What both stages learn from: token ids of each text, the teacher's vector of each, and the topics.

    Args:
        sequences: token ids (with end of sequence) of each text.
        vectors: teacher's vectors, float16 (N, 384).
        separator: token ids between the two texts of a pair.
        topics: clusters of meaning with their names.
        batch: texts a step.
        seed: base of every draw.
    """

    sequences: Sequence[Sequence[int]]
    vectors: np.ndarray
    separator: Sequence[int]
    topics: Topics
    batch: int
    seed: int

    def encoder_loss(self, backbone: Any, head: nn.Module) -> Callable[[int], torch.Tensor]:
        """Cosine to the teacher's vector and match of the batch's similarity matrix, by step."""
        buckets = LengthBuckets(self.sequences, self.seed)

        def loss_of(step: int) -> torch.Tensor:
            chosen = buckets.draw(step, self.batch)
            ids, mask = pad([self.sequences[index] for index in chosen], _PAD_ID)
            target = torch.from_numpy(self.vectors[chosen]).float()  # (B, 384)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state  # (B, S, h)
            weight = mask.unsqueeze(-1).float()
            pooled = (states.float() * weight).sum(1) / weight.sum(1)
            predicted = functional.normalize(head(pooled), dim=-1)
            cosine = 1.0 - (predicted * target).sum(-1).mean()
            gram = predicted @ predicted.T - target @ target.T
            return cosine + _SIMILARITY_SHARPNESS * gram.square().mean()

        return loss_of

    def reader_loss(self, backbone: Any, heads: nn.ModuleDict) -> Callable[[int], torch.Tensor]:
        """In turn, from the decoder's first state: a text's vector, a pair's similarity, the name of a text's topic."""
        buckets = LengthBuckets(self.sequences, self.seed + 1)
        objectives = (self._vector_loss, self._pair_loss, self._topic_loss)

        def loss_of(step: int) -> torch.Tensor:
            return objectives[step % 3](step, buckets, backbone, heads)

        return loss_of

    def _first_state(self, backbone: Any, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        ids, mask = pad(sequences, _PAD_ID)
        start = torch.zeros(len(sequences), 1, dtype=torch.long)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            decoded = backbone.decoder(
                input_ids=start, encoder_hidden_states=states, encoder_attention_mask=mask, use_cache=False
            ).last_hidden_state  # (B, 1, h)
        first: torch.Tensor = decoded[:, 0].float()
        return first

    def _vector_loss(self, step: int, buckets: LengthBuckets, backbone: Any, heads: nn.ModuleDict) -> torch.Tensor:
        chosen = buckets.draw(step, self.batch)
        state = self._first_state(backbone, [self.sequences[index] for index in chosen])
        predicted = functional.normalize(heads["vector"](state), dim=-1)
        target = torch.from_numpy(self.vectors[chosen]).float()
        gram = predicted @ predicted.T - target @ target.T
        return 1.0 - (predicted * target).sum(-1).mean() + _SIMILARITY_SHARPNESS * gram.square().mean()

    def _pair_loss(self, step: int, buckets: LengthBuckets, backbone: Any, heads: nn.ModuleDict) -> torch.Tensor:
        rng = np.random.default_rng((self.seed, 3, step))
        pool = buckets.draw(step, self.batch * 16)
        vectors = self.vectors[pool].astype(np.float32)
        left = rng.permutation(len(pool))[: self.batch]
        similarity = vectors[left] @ vectors.T  # (B, pool)
        similarity[np.arange(len(left)), left] = -1.0
        near = np.argsort(-similarity, axis=1)[np.arange(len(left)), rng.integers(0, 3, len(left))]
        right = np.where(rng.random(len(left)) < 0.6, near, rng.integers(0, len(pool), len(left)))
        sequences = [
            [*self.sequences[pool[a]][:-1][:_PAIR_TOKENS], *self.separator, *self.sequences[pool[b]][-_PAIR_TOKENS:]]
            for a, b in zip(left, right, strict=True)
        ]
        target = torch.from_numpy((vectors[left] * vectors[right]).sum(1))
        predicted = heads["similarity"](self._first_state(backbone, sequences)).squeeze(-1)
        loss: torch.Tensor = 10.0 * (predicted - target).square().mean()
        return loss

    def _topic_loss(self, step: int, buckets: LengthBuckets, backbone: Any, heads: nn.ModuleDict) -> torch.Tensor:
        del heads
        chosen = buckets.draw(step, self.batch)
        state = self._first_state(backbone, [self.sequences[index] for index in chosen])
        level = step // 3 % len(self.topics.levels)
        names = self.topics.first_tokens(level)  # (K,)
        scale = state.shape[-1] ** -0.5
        logits = (state * scale) @ backbone.lm_head.weight[names].T  # (B, K)
        target = torch.from_numpy(self.topics.levels[level].assignment[chosen]).long()
        return functional.cross_entropy(logits, target)


def reader_heads(d_model: int) -> nn.ModuleDict:
    """The two throw-away heads of the reading stage."""
    return nn.ModuleDict({"vector": nn.Linear(d_model, SIZE), "similarity": nn.Linear(d_model, 1)})
