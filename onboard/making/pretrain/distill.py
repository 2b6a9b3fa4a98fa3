"""Stage `distill`: train the encoder on the teacher's states per token and layer, and on its text vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from onboard.making.multitask.loop import LossOf, StepLoss
from onboard.making.pretrain.inherit import with_start
from onboard.making.pretrain.teacher import Teacher, pooled
from onboard.making.pretrain.tokenizer import PAD_ID
from onboard.model.encoding import pad
from onboard.model.rounding import has_bfloat16

_MOST_TEXTS, _FEWEST_TEXTS = 128, 8  # per batch
_LAST_LAYER: Final = 2.0  # weight of the last layer's states; other layers have 1
_VECTOR, _SIMILARITY = 2.0, 5.0  # weights of the texts' vectors and of their similarities
_WIDTHS: Final = 16  # a batch is drawn from this many times its size of texts with neighboring lengths


@dataclass(frozen=True)
class Distillation:
    """The data of distillation.

    Args:
        sequences: token ids (with end of sequence) of each text.
        vectors: the teacher's vectors of the first texts, float16 (M, h), computed from whole words, which our
            tokenizer may split. For other texts, the teacher reads our tokens.
        to_teacher: the teacher's token id of each of our tokens (V,).
        tokens: padded tokens per batch.
    """

    sequences: Sequence[Sequence[int]]
    vectors: np.ndarray
    to_teacher: Tensor
    tokens: int
    seed: int

    def loss(self, backbone: Any, teacher: Teacher) -> LossOf:
        """Return the loss by step: cosine distances to the teacher's states and vectors, and of similarities."""
        lengths = np.array([len(sequence) for sequence in self.sequences])
        order = np.argsort(lengths, kind="stable")
        weights = np.ones(len(backbone.encoder.block))
        weights[-1] = _LAST_LAYER
        weights /= weights.sum()
        fast = has_bfloat16()
        taught = teacher.model.to(torch.bfloat16 if fast else torch.float32)

        def loss_of(step: int) -> StepLoss:
            batch = _draw(np.random.default_rng((self.seed, 1, step)), lengths, order, self.tokens)
            ids, mask = pad([self.sequences[index] for index in batch], PAD_ID)
            taught_ids, taught_mask = with_start(ids, mask, self.to_teacher, teacher.tokenizer.cls_token_id)
            with torch.no_grad():
                goal = taught(input_ids=taught_ids, attention_mask=taught_mask, output_hidden_states=True)
                vectors = pooled(goal.last_hidden_state.float(), taught_mask)  # (B, h)
                has_vector = batch < len(self.vectors)
                vectors[torch.from_numpy(has_vector)] = torch.from_numpy(
                    self.vectors[batch[has_vector]].astype(np.float32)
                )
            with _layer_outputs(backbone.encoder) as outputs, torch.autocast("cpu", torch.bfloat16, enabled=fast):
                states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()  # (B, S, h)
            real = mask.bool()
            loss = torch.zeros(())
            for weight, ours, theirs in zip(weights.tolist(), outputs, goal.hidden_states[1:], strict=True):
                loss = loss + weight * _distance(ours[real].float(), theirs[:, 1:][real].float())
            loss = loss + _of_texts(pooled(states, mask), vectors)
            return StepLoss(loss, rows=len(batch), tokens=int(mask.sum()))

        return loss_of


@dataclass(frozen=True)
class Keeping:
    """Keeps the encoder close to its teacher during multi-task training, by the vectors of whole texts.

    Args:
        sequences: token ids (with end of sequence) of each text (M).
        vectors: the teacher's unit vectors of them, float16 (M, h).
        tokens: padded tokens per step.
        weight: of this loss; the tasks' loss has 1.
    """

    sequences: Sequence[Sequence[int]]
    vectors: np.ndarray
    tokens: int
    seed: int
    weight: float

    def beside(self, loss_of: LossOf, encoder: Any, precision: torch.dtype) -> LossOf:
        """Return the loss by step plus the weighted loss of some texts."""
        lengths = np.array([len(sequence) for sequence in self.sequences])
        order = np.argsort(lengths, kind="stable")

        def both(step: int) -> StepLoss:
            loss = loss_of(step)
            device = loss.value.device
            batch = _draw(np.random.default_rng((self.seed, 7, step)), lengths, order, self.tokens)
            ids, mask = (tensor.to(device) for tensor in pad([self.sequences[index] for index in batch], PAD_ID))
            vectors = torch.from_numpy(self.vectors[batch].astype(np.float32)).to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
                states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            # a wider backbone uses only its first states; the others are free
            shared_states = states[..., : vectors.shape[1]].float()
            return replace(loss, value=loss.value + self.weight * _of_texts(pooled(shared_states, mask), vectors))

        return both


def _of_texts(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return the distance of text vectors (B, h) to the teacher's, plus that of their similarities."""
    similarities = (ours @ ours.T - theirs @ theirs.T).square().mean()
    return _VECTOR * (1 - (ours * theirs).sum(-1).mean()) + _SIMILARITY * similarities


def _draw(rng: np.random.Generator, lengths: np.ndarray, order: np.ndarray, tokens: int) -> np.ndarray:
    """Return the indices of one batch: texts of similar length, as many as the token budget allows."""
    at = int(rng.integers(len(order)))
    size = int(np.clip(tokens // lengths[order[at]], _FEWEST_TEXTS, _MOST_TEXTS))
    first = max(0, at - size * _WIDTHS // 2)
    window = order[first : first + size * _WIDTHS]
    return rng.choice(window, min(size, len(window)), replace=False)


def _distance(ours: Tensor, theirs: Tensor) -> Tensor:
    return 1 - functional.cosine_similarity(ours, theirs, dim=-1).mean()


@contextmanager
def _layer_outputs(encoder: Any) -> Iterator[list[Tensor]]:
    """Yield the outputs of each block (B, S, h), in order, filled when the encoder runs."""
    outputs: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
        outputs.append(output[0])

    handles = [block.register_forward_hook(keep) for block in encoder.block]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def relative_groups(
    parameters: Mapping[str, nn.Parameter], decoder: float = 1.0
) -> list[tuple[list[nn.Parameter], float]]:
    """Return parameters with multiples of the learning rate in proportion to their size, as in Adafactor (arXiv
    1804.04235).

    An inherited matrix of the first layer is a hundred times smaller than one of the last, so one step size would be
    too large for the one and too small for the other. Norms (all near one) count as one; position biases, which start
    at zero, as five.

    Args:
        parameters: by name.
        decoder: additional factor for the decoder, which starts with noise.
    """
    groups = []
    for name, parameter in parameters.items():
        if "relative_attention_bias" in name:
            multiple = 5.0
        elif "layer_norm" in name:
            multiple = 1.0
        else:
            multiple = max(0.01, float(parameter.detach().square().mean().sqrt()))
        groups.append(([parameter], multiple * (decoder if name.startswith("decoder.") else 1.0)))
    return groups
