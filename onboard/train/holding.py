"""Regularizers that keep a hypernetwork in place while it is tuned, from earlier embeddings without their rows.

- "drift": how far the weights move that are generated for an earlier embedding, as ‖h(z; Θ) − h(z; Θ₀)‖² /
  ‖h(z; Θ₀)‖², the mean over its tensors (after von Oswald et al., arXiv 1906.00695). It is relative because the layer
  norm after U makes U's scale irrelevant.
- "divergence": how far its answers move, as KL(before ‖ after) on canary texts with its label words (after Li and
  Hoiem, arXiv 1606.09282).

Θ₀ is the hypernetwork that the earlier embedding was learned under. Relative to the latest one, the changes of many
tunings would accumulate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from onboard.model.drift import relative_drift
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.memory import RowsAtOnce
from onboard.model.protected import Protection
from onboard.train.settings import Regulariser

_DRIFT_AT_ONCE: Final = 16  # number of embeddings for which weights are generated together


@dataclass(frozen=True)
class DrawnPairs:
    """The sample of a step: R earlier embeddings and as many canary texts, by index (R,)."""

    embeddings: np.ndarray
    texts: np.ndarray


def draws(embeddings: int, texts: int, sampled: int, steps: int, seed: int) -> list[DrawnPairs]:
    """Draw `sampled` pairs for every step; embeddings and texts come in shuffled rounds, so all are drawn equally
    often.

    Args:
        embeddings, texts: their numbers; without embeddings nothing is drawn.
        sampled: pairs per step.
    """
    rng = np.random.default_rng((seed, 11))

    def rounds(of: int) -> np.ndarray:
        if not embeddings or not of:
            return np.zeros((steps, sampled if embeddings else 0), dtype=np.int64)
        drawn = [rng.permutation(of) for _ in range(math.ceil(steps * sampled / of))]
        return np.concatenate(drawn)[: steps * sampled].reshape(steps, sampled)

    return [DrawnPairs(*drawn) for drawn in zip(rounds(embeddings), rounds(texts), strict=True)]


class Holding:
    """One of the regularizers.

    Args:
        engine: engine with the hypernetwork that the tuning starts from.
        protection: the earlier embeddings, and canary texts, which "drift" does not need.
    """

    def __init__(self, engine: Engine, protection: Protection, regulariser: Regulariser) -> None:
        self._engine, self._earlier, self._texts = engine, protection.tasks, protection.canaries
        self._of = {"drift": self._drift, "divergence": self._divergence}[regulariser]

    def backward(self, tuned: Hypernetwork, drawn: DrawnPairs, beta: float, at_once: RowsAtOnce) -> float:
        """Add the gradient of β times the regularizer to `tuned`; return the regularizer (mean over the sample).

        Args:
            tuned: the current hypernetwork.
            beta: its weight.
            at_once: batch size that fits in memory.
        """
        total = 0.0
        for origin, pairs in self._by_origin(drawn.embeddings):
            for part in at_once.parts(len(pairs)):
                chosen = pairs[part]
                mean = self._of(tuned, origin, drawn, chosen).sum() / len(drawn.embeddings)
                (beta * mean).backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                total += float(mean.detach())
        return total

    def drift(self, tuned: Hypernetwork) -> float:
        """Return the mean drift over all earlier embeddings; 0 without any."""
        everything = DrawnPairs(np.arange(len(self._earlier)), np.zeros(len(self._earlier), dtype=np.int64))
        total, at_once = 0.0, RowsAtOnce(_DRIFT_AT_ONCE)
        with torch.no_grad():
            for origin, pairs in self._by_origin(everything.embeddings):
                for part in at_once.parts(len(pairs)):
                    total += float(self._drift(tuned, origin, everything, pairs[part]).sum())
        return total / max(1, len(self._earlier))

    def _by_origin(self, embeddings: np.ndarray) -> Iterator[tuple[Hypernetwork, np.ndarray]]:
        """Yield each hypernetwork that drawn embeddings were learned under, with their indices."""
        origins = [self._earlier[index].reference for index in embeddings.tolist()]
        for origin in dict.fromkeys(origins):
            yield origin, np.flatnonzero([other is origin for other in origins])

    def _drift(self, tuned: Hypernetwork, origin: Hypernetwork, drawn: DrawnPairs, chosen: np.ndarray) -> Tensor:
        """Return the drift of each of the chosen pairs (B,)."""
        z = self._stacked(drawn.embeddings[chosen], tuned)
        with torch.no_grad():
            before = origin(z)
        after = tuned(z)
        return relative_drift((*before.encoder, *before.decoder), (*after.encoder, *after.decoder))

    def _divergence(self, tuned: Hypernetwork, origin: Hypernetwork, drawn: DrawnPairs, chosen: np.ndarray) -> Tensor:
        """Return the divergence of each of the chosen pairs (B,), in nats."""
        embeddings, of = np.unique(drawn.embeddings[chosen], return_inverse=True)
        z, tries = self._stacked(embeddings, tuned), [self._earlier[index].trie for index in embeddings.tolist()]
        ids, rows = [self._texts[index] for index in drawn.texts[chosen].tolist()], torch.from_numpy(of)
        with torch.no_grad():
            before = self._engine.log_probabilities(ids, z, tries, rows, hypernetwork=origin)  # (B, K)
        after = self._engine.log_probabilities(ids, z, tries, rows, hypernetwork=tuned)
        there = before > -torch.inf  # both are −inf beyond a row's labels
        return torch.where(there, before.exp() * (before - after), 0.0).sum(-1)

    def _stacked(self, embeddings: np.ndarray, hypernetwork: Hypernetwork) -> Tensor:
        stacked = np.stack([self._earlier[index].z for index in embeddings.tolist()]).astype(np.float32)
        return torch.from_numpy(stacked).to(next(hypernetwork.parameters()).device)  # (T, t)
