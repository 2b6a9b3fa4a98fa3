"""A decoder that is sure of one label's tokens, whatever the text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from onboard.model.scoring import PackedTries


class Peaked:
    """Stands for `onboard.model.scoring.edge_logits` of one task: 20 for every edge that `tokens` take, 0 elsewhere.

    It finds the edges by the tokens on the way to them, not by the trie's own paths.
    """

    tokens: Sequence[int] = ()  # of the label, end-of-sequence included

    def __call__(self, _backbone: Any, states: Tensor, _mask: Any, tries: PackedTries, *_more: Any) -> Tensor:
        """(B, E) float32."""
        taken = [list(self.tokens[: len(way)]) == way for way in _ways(tries)]
        return torch.tensor(taken, dtype=torch.float32).mul(20.0).expand(len(states), -1)


@lru_cache(1)
def _ways(tries: PackedTries) -> list[list[int]]:
    """The tokens from the root, which has none, to each edge's end."""
    ways = []
    for node, token in zip(tries.edge_node[0].tolist(), tries.edge_token[0].tolist(), strict=True):
        ancestors = tries.visible[0, node].nonzero().flatten()
        ordered = ancestors[tries.depth[0, ancestors].argsort()]
        ways.append([*tries.tokens[0, ordered[1:]].tolist(), token])
    return ways
