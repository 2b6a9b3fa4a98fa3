"""Readout features of a text: six blocks of numbers from one pass of the bare encoder.

    0   mean of the last states over the tokens
    1   mean of the states of the middle layer, which are closer to single words
    2   mean of the states before the last layer
    3   for a pair, mean of the second text's last states minus that of the first's; 0 for a single text
    4   the same for the middle layer
    5   the same for the states before the last layer

Differences keep which text is which: an order (simpler, cause, answer) is lost in a mean over both, and in |u - v| and
u∘v too. All blocks come from states in which both texts have seen each other, so a pair is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from onboard.statistics.blocks import BLOCKS

BLOCKS_OF_TEXTS: Final = 3  # the first blocks, the only ones of a single text


def blocks_of(*, pairs: bool) -> int:
    """Return the number of leading blocks that texts or pairs have."""
    return BLOCKS if pairs else BLOCKS_OF_TEXTS


def readout_features(
    encoder: Any, input_ids: Tensor, mask: Tensor | None, separator: Sequence[int], end: int
) -> Tensor:
    """Return the features (B, 6h) float32 of a batch.

    Args:
        encoder: of a T5 with hidden size h, without adapters.
        input_ids: (B, S)
        mask: (B, S), 1 for tokens; None without padding.
        separator: token ids between the texts of a pair; the first occurrence separates them.
        end: token id at the end of each row, which belongs to neither text.
    """
    states = encoder(input_ids=input_ids, attention_mask=mask, output_hidden_states=True).hidden_states
    tokens = torch.ones_like(input_ids) if mask is None else mask
    first, second = _parts(input_ids, tokens, separator, end)
    is_pair = second.any(1, keepdim=True)
    layers = [layer.float() for layer in (states[-1], states[len(states) // 2], states[-2])]
    apart = [(mean_of(layer, second) - mean_of(layer, first)) * is_pair for layer in layers]
    return torch.cat([*(mean_of(layer, tokens) for layer in layers), *apart], dim=1)


def _parts(input_ids: Tensor, present: Tensor, separator: Sequence[int], end: int) -> tuple[Tensor, Tensor]:
    """Return the masks of the first and second text's tokens, each (B, S); a single text is all first."""
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
    """Return the mean of states (B, S, h) over the chosen tokens (B, S); 0 if there are none."""
    weights = chosen[..., None].to(states.dtype)
    mean: Tensor = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
    return mean
