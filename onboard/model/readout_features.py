"""What a readout sees of a text: six blocks of numbers from one pass of the bare encoder.

    0   mean of the last states over the tokens
    1   mean of the states halfway up: what words say before the encoder has made its mind up of them
    2   mean of the states before the last layer
    3   of a pair, mean of the second text's last states less that of the first's; 0 of a single text
    4   the same halfway up
    5   the same before the last layer

Differences keep which text is which: an order (simpler, cause, answer) is lost in a mean over both, and in |u - v| and
u∘v too. All blocks come from states in which both texts have seen each other, so a pair is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from onboard.statistics.blocks import BLOCKS

BLOCKS_OF_TEXTS: Final = 3  # the first ones: all that a single text has


def blocks_of(*, pairs: bool) -> int:
    """How many of the blocks texts or pairs have, the first ones."""
    return BLOCKS if pairs else BLOCKS_OF_TEXTS


def readout_features(
    encoder: Any, input_ids: Tensor, mask: Tensor | None, separator: Sequence[int], end: int
) -> Tensor:
    """(B, 6h) float32, of a batch.

    Args:
        encoder: a T5's, of hidden size h, without adapters.
        input_ids: (B, S)
        mask: (B, S), 1 where there is a token; None where nothing is padded.
        separator: token ids between the texts of a pair; the first that comes parts them.
        end: token id at the end of each row, which belongs to neither text.
    """
    states = encoder(input_ids=input_ids, attention_mask=mask, output_hidden_states=True).hidden_states
    present = torch.ones_like(input_ids) if mask is None else mask
    first, second = _parts(input_ids, present, separator, end)
    is_pair = second.any(1, keepdim=True)
    layers = [layer.float() for layer in (states[-1], states[len(states) // 2], states[-2])]
    apart = [(mean_of(layer, second) - mean_of(layer, first)) * is_pair for layer in layers]
    return torch.cat([*(mean_of(layer, present) for layer in layers), *apart], dim=1)


def _parts(input_ids: Tensor, present: Tensor, separator: Sequence[int], end: int) -> tuple[Tensor, Tensor]:
    """Which tokens belong to the first and which to the second text, each (B, S); all to the first of a single text."""
    width, size = len(separator), input_ids.shape[1]
    starts = torch.ones_like(input_ids, dtype=torch.bool)
    for place, token in enumerate(separator):
        is_there = input_ids == token
        starts = starts & torch.nn.functional.pad(is_there[:, place:], (0, place))
    begun = starts.to(input_ids.dtype).cumsum(1) > 0
    after = torch.nn.functional.pad(begun, (width, 0))[:, :size]
    text = present.bool() & (input_ids != end)
    return text & ~begun, text & after


def mean_of(states: Tensor, chosen: Tensor) -> Tensor:
    """Of the states (B, S, h) of the chosen tokens (B, S); 0 where none is."""
    weights = chosen[..., None].to(states.dtype)
    mean: Tensor = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
    return mean
