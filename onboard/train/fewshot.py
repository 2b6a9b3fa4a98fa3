"""Training of one task embedding on a frozen backbone under a frozen hypernetwork, by a plain loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from onboard.errors import JobFailedError
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie


@dataclass(frozen=True)
class FewShotSettings:
    """How an embedding is trained.

    Args:
        steps: optimiser steps; fixed, because under 64 rows no validation can say when to stop (arXiv 2105.11447).
        batch: rows a step.
        learning_rate: of Adam, constant; inputs of so few numbers want far more than weights do.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
    """

    steps: int = 40
    batch: int = 16
    learning_rate: float = 0.1
    averaged_share: float = 0.25
    norm_per_root: float = 2.0


@dataclass(frozen=True)
class LabelledRows:
    """What is trained on.

    Args:
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K).
    """

    ids: Sequence[Sequence[int]]
    targets: np.ndarray


@dataclass(frozen=True)
class Trained:
    """A trained embedding.

    Args:
        z: (t,) float32.
        losses: training loss of each step, nats.
        norms: ‖z‖ after each step.
        padding_share: share of padding among all token positions that were computed.
    """

    z: np.ndarray
    losses: tuple[float, ...]
    norms: tuple[float, ...]
    padding_share: float

    def to_json(self) -> dict[str, Any]:
        """The course of the training (without z) as a JSON-compatible document."""
        return {
            "steps": len(self.losses),
            "loss": list(self.losses),
            "z_norm": list(self.norms),
            "padding_share": self.padding_share,
        }


def train_embedding(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> Trained:
    """Minimise the loss that is scored; only z moves. The same bytes for the same seed on a CPU.

    Where a batch does not fit into a GPU's memory, the gradients of its parts are added up: the same but for rounding.

    Args:
        engine: frozen backbone and hypernetwork.
        start: (t,) where z starts.
        rows: labelled rows.
        trie: of the label words.
        settings: steps, batch, learning rate.
        seed: of the batches' order.
        on_step: told step (from 1) and loss; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Raises:
        JobFailedError: the loss is not finite.
        OutOfMemoryError: the GPU has no room for a single row.
    """
    at_once = at_once or RowsAtOnce()
    z = torch.tensor(start[None], dtype=torch.float32, device=engine.device, requires_grad=True)  # (1, t)
    targets = torch.from_numpy(np.ascontiguousarray(rows.targets, dtype=np.float32)).to(engine.device)
    optimiser = torch.optim.Adam([z], lr=settings.learning_rate)
    bound = settings.norm_per_root * z.shape[1] ** 0.5
    first_averaged = settings.steps - max(1, round(settings.steps * settings.averaged_share))
    summed = torch.zeros_like(z, requires_grad=False)
    losses: list[float] = []
    norms: list[float] = []
    padding = Padding()

    def gradient(chosen: np.ndarray) -> float:
        """Leaves the gradient of the batch's mean loss in z, and returns the loss."""
        optimiser.zero_grad()
        total = 0.0
        for part in at_once.parts(len(chosen)):
            taken = chosen[part]
            scores = engine.log_probabilities([rows.ids[row] for row in taken], z, [trie])
            loss = -(targets[taken] * scores).sum(-1).mean() * (len(taken) / len(chosen))
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            total += float(loss.detach())
        return total

    for step, chosen in enumerate(batches([len(ids) for ids in rows.ids], settings, seed)):
        losses.append(at_once.fitting(len(chosen), partial(gradient, chosen)))
        if not np.isfinite(losses[-1]):
            raise JobFailedError(
                f"The training loss became {losses[-1]} at step {step + 1}.", "submit again with another --seed"
            )
        for part in at_once.parts(len(chosen)):
            padding.count([rows.ids[row] for row in chosen[part]])
        optimiser.step()
        with torch.no_grad():
            z.mul_(torch.clamp(bound / z.norm(), max=1.0))
            if step >= first_averaged:
                summed += z
        norms.append(float(z.detach().norm()))
        on_step(step + 1, losses[-1])
    averaged = (summed / (settings.steps - first_averaged)).squeeze(0)
    return Trained(averaged.cpu().numpy(), tuple(losses), tuple(norms), padding.share)


def batches(lengths: Sequence[int], settings: FewShotSettings, seed: int) -> list[np.ndarray]:
    """Row indices of every step: epochs of shuffled batches, each of rows of like length (noise breaks the ties).

    Args:
        lengths: tokens of each row.
        settings: steps and batch.
        seed: decides the order.
    """
    rng = np.random.default_rng((seed, 7))
    size = min(settings.batch, len(lengths))
    found: list[np.ndarray] = []
    while len(found) < settings.steps:
        noisy = np.asarray(lengths) * rng.uniform(0.8, 1.25, len(lengths))
        order = np.argsort(noisy, kind="stable")
        count = max(1, len(order) // size)
        parts = np.array_split(order, count)
        found.extend(parts[index] for index in rng.permutation(count))
    return found[: settings.steps]


class Padding:
    """Counts how many token positions of the batches are padding."""

    def __init__(self) -> None:
        self._real = self._all = 0

    def count(self, ids: Sequence[Sequence[int]]) -> None:
        """Count what went through the model together."""
        self._real += sum(map(len, ids))
        self._all += len(ids) * max(map(len, ids))

    @property
    def share(self) -> float:
        """Padding positions / all positions; 0 before the first batch."""
        return 1.0 - self._real / self._all if self._all else 0.0
