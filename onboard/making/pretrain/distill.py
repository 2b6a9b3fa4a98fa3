"""Stage `distill`: the encoder goes on learning the teacher, token by token in every layer, and text by text."""

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

_MOST_TEXTS, _FEWEST_TEXTS = 128, 8  # of a batch
_LAST_LAYER: Final = 2.0  # weight of the last layer's states, beside 1 of each other
_VECTOR, _SIMILARITY = 2.0, 5.0  # weights of the texts' vectors and of their similarities
_WIDTHS: Final = 16  # a batch is drawn from so many times its size of neighbours in length


@dataclass(frozen=True)
class Distillation:
    """What is learned from.

    Args:
        sequences: token ids (with end of sequence) of each text.
        vectors: the teacher's vectors of the first texts, float16 (M, h): of their whole words, which our pieces may
            have split. For the others the teacher reads our pieces.
        to_teacher: the teacher's token id of each of ours (V,).
        tokens: padded tokens of a batch.
        seed: base of every draw.
    """

    sequences: Sequence[Sequence[int]]
    vectors: np.ndarray
    to_teacher: Tensor
    tokens: int
    seed: int

    def loss(self, backbone: Any, teacher: Teacher) -> LossOf:
        """By step: cosine distance to the teacher's states in every layer and to its vectors, and of similarities."""
        lengths = np.array([len(sequence) for sequence in self.sequences])
        order = np.argsort(lengths, kind="stable")
        weights = np.ones(len(backbone.encoder.block))
        weights[-1] = _LAST_LAYER
        weights /= weights.sum()
        fast = has_bfloat16()
        taught = teacher.model.to(torch.bfloat16 if fast else torch.float32)

        def loss_of(step: int) -> StepLoss:
            chosen = _draw(np.random.default_rng((self.seed, 1, step)), lengths, order, self.tokens)
            ids, mask = pad([self.sequences[index] for index in chosen], PAD_ID)
            taught_ids, taught_mask = with_start(ids, mask, self.to_teacher, teacher.tokenizer.cls_token_id)
            with torch.no_grad():
                goal = taught(input_ids=taught_ids, attention_mask=taught_mask, output_hidden_states=True)
                vectors = pooled(goal.last_hidden_state.float(), taught_mask)  # (B, h)
                known = chosen < len(self.vectors)
                vectors[torch.from_numpy(known)] = torch.from_numpy(self.vectors[chosen[known]].astype(np.float32))
            with _layer_outputs(backbone.encoder) as outputs, torch.autocast("cpu", torch.bfloat16, enabled=fast):
                states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()  # (B, S, h)
            real = mask.bool()
            loss = torch.zeros(())
            for weight, ours, theirs in zip(weights.tolist(), outputs, goal.hidden_states[1:], strict=True):
                loss = loss + weight * _distance(ours[real].float(), theirs[:, 1:][real].float())
            loss = loss + _of_texts(pooled(states, mask), vectors)
            return StepLoss(loss, rows=len(chosen), tokens=int(mask.sum()))

        return loss_of


@dataclass(frozen=True)
class Keeping:
    """What keeps the encoder from forgetting its teacher while it learns tasks: the vectors of whole texts alone.

    Args:
        sequences: token ids (with end of sequence) of each text (M).
        vectors: the teacher's unit vectors of them, float16 (M, h).
        tokens: padded tokens of a step.
        seed: base of every draw.
        weight: of its loss, beside 1 of the tasks'.
    """

    sequences: Sequence[Sequence[int]]
    vectors: np.ndarray
    tokens: int
    seed: int
    weight: float

    def beside(self, loss_of: LossOf, encoder: Any, precision: torch.dtype) -> LossOf:
        """The loss by step, with that of some texts beside it."""
        lengths = np.array([len(sequence) for sequence in self.sequences])
        order = np.argsort(lengths, kind="stable")

        def both(step: int) -> StepLoss:
            loss = loss_of(step)
            device = loss.value.device
            chosen = _draw(np.random.default_rng((self.seed, 7, step)), lengths, order, self.tokens)
            ids, mask = (tensor.to(device) for tensor in pad([self.sequences[index] for index in chosen], PAD_ID))
            vectors = torch.from_numpy(self.vectors[chosen].astype(np.float32)).to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
                states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            held = states[..., : vectors.shape[1]].float()  # of a wider backbone the first states; the others are free
            return replace(loss, value=loss.value + self.weight * _of_texts(pooled(held, mask), vectors))

        return both


def _of_texts(ours: Tensor, theirs: Tensor) -> Tensor:
    """How far unit vectors of texts (B, h) are from the teacher's, and their similarities from the teacher's."""
    similarities = (ours @ ours.T - theirs @ theirs.T).square().mean()
    return _VECTOR * (1 - (ours * theirs).sum(-1).mean()) + _SIMILARITY * similarities


def _draw(rng: np.random.Generator, lengths: np.ndarray, order: np.ndarray, tokens: int) -> np.ndarray:
    """Indices of one batch: texts of like length, as many as the tokens allow."""
    at = int(rng.integers(len(order)))
    size = int(np.clip(tokens // lengths[order[at]], _FEWEST_TEXTS, _MOST_TEXTS))
    first = max(0, at - size * _WIDTHS // 2)
    window = order[first : first + size * _WIDTHS]
    return rng.choice(window, min(size, len(window)), replace=False)


def _distance(ours: Tensor, theirs: Tensor) -> Tensor:
    return 1 - functional.cosine_similarity(ours, theirs, dim=-1).mean()


@contextmanager
def _layer_outputs(encoder: Any) -> Iterator[list[Tensor]]:
    """What each block hands on (B, S, h), in order, once the encoder has run."""
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
    """Parameters with the multiple of the learning rate that suits their size, as Adafactor has it (arXiv 1804.04235).

    An inherited matrix of the first layer is a hundred times smaller than one of the last: one step size for both would
    shake the one and not move the other. Norms (all near one) count as one; position biases, which begin at zero, as
    five.

    Args:
        parameters: by name.
        decoder: more for the decoder, which begins with noise.
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
