"""Train several task embeddings at once as rows of one batch: seeds, folds or starts.

Each has a separate start, label words and rows. The model processes them together without mixing gradients: the loss is
a sum of the separate losses, and Adam works elementwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor

from onboard.errors import JobFailedError
from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.model.steps import Steps

AT_ONCE: Final = 32  # rows per pass of the model; more are not faster on a CPU


@dataclass(frozen=True)
class TrainingRun:
    """One embedding to train.

    Args:
        start: (t,) initial z.
        trie: of K label words.
        batches: row indices of each step; the same number of steps for all runs.
    """

    start: np.ndarray
    trie: LabelTrie
    batches: Sequence[np.ndarray]


@dataclass(frozen=True)
class Moved:
    """The result of a run.

    Args:
        z: (t,) float32.
        losses: training loss of each step, nats.
        course: (steps, t) z after each step.
        padding_share: share of padding among all computed token positions, over all runs.
    """

    z: np.ndarray
    losses: tuple[float, ...]
    course: np.ndarray
    padding_share: float = 0.0

    @property
    def norms(self) -> tuple[float, ...]:
        """‖z‖ after each step."""
        return tuple(np.linalg.norm(self.course, axis=1).tolist())


def train_side_by_side(
    engine: Engine,
    runs: Sequence[TrainingRun],
    ids: Sequence[Sequence[int]],
    targets: np.ndarray,
    steps: Steps,
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> list[Moved]:
    """Minimize the loss; only the z change. Deterministic on a CPU.

    If a batch does not fit into a GPU's memory, the gradients of its parts are added, which is equal except for
    rounding.

    Args:
        engine: frozen backbone and hypernetwork.
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K); all runs have K words.
        on_step: receives step (from 1) and mean loss; may raise to stop.
        at_once: how many rows fit into memory; kept for further calls.

    Raises:
        JobFailedError: a loss is not finite.
        OutOfMemoryError: a single row does not fit into the GPU's memory.
    """
    z = torch.from_numpy(np.stack([run.start for run in runs])).float().to(engine.device).requires_grad_(True)  # (S, t)
    losing = Losses(engine, [run.trie for run in runs], ids, targets, at_once)
    count = len(runs[0].batches)
    mover = _Mover(z, steps, count)
    losses, course = np.zeros((count, len(runs))), np.zeros((count, *z.shape), dtype=np.float32)
    for step in range(count):
        gradient, losses[step] = losing.gradient(z, [run.batches[step] for run in runs])
        if not np.isfinite(losses[step]).all():
            raise JobFailedError("training-diverged", loss=losses[step].max(), step=step + 1)
        course[step] = mover.moved(gradient)
        on_step(step + 1, float(losses[step].mean()))
    averaged = course[count - max(1, round(count * steps.averaged_share)) :].mean(0).astype(np.float32)
    padding = losing.padding.share
    return [Moved(averaged[run], tuple(losses[:, run].tolist()), course[:, run], padding) for run in range(len(runs))]


class _Mover:
    """Optimizes z (S, t) with a given number of gradients; each run stays within the bound of its norm."""

    def __init__(self, z: Tensor, steps: Steps, count: int) -> None:
        self._z, self._bound = z, steps.norm_per_root * z.shape[1] ** 0.5
        self._optimiser = torch.optim.Adam([z], lr=steps.learning_rate)
        self._rate = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser, lambda step: 1.0 - step / count if steps.falling else 1.0
        )

    @torch.no_grad()
    def moved(self, gradient: Tensor) -> np.ndarray:
        """Take one step and return z (S, t)."""
        self._z.grad = gradient
        self._optimiser.step()
        self._rate.step()
        self._z.mul_(torch.clamp(self._bound / self._z.norm(dim=1, keepdim=True), max=1.0))
        z: np.ndarray = self._z.cpu().numpy()
        return z


class Losses:
    """Mean losses of S runs on separate rows, and the gradients for the runs' z, computed together.

    Args:
        engine: frozen backbone and hypernetwork.
        tries: of each run's K label words.
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K).
        at_once: how many rows fit into memory; kept for further calls.
    """

    def __init__(
        self,
        engine: Engine,
        tries: Sequence[LabelTrie],
        ids: Sequence[Sequence[int]],
        targets: np.ndarray,
        at_once: RowsAtOnce | None = None,
    ) -> None:
        self._engine, self._tries, self._ids = engine, tries, ids
        self._wanted = torch.from_numpy(np.ascontiguousarray(targets, dtype=np.float32)).to(engine.device)
        self._at_once = at_once or RowsAtOnce(AT_ONCE)
        self.padding = Padding()

    def gradient(self, z: Tensor, chosen: Sequence[np.ndarray]) -> tuple[Tensor, np.ndarray]:
        """Return the gradient (S, t) of the runs' mean losses, and the losses (S,).

        Args:
            z: (S, t) of the runs.
            chosen: rows of each run.

        Raises:
            OutOfMemoryError: a single row does not fit into the GPU's memory.
        """
        rows, of = np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
        order = np.argsort([len(self._ids[row]) for row in rows], kind="stable")
        rows, of = rows[order], of[order]
        lengths, device = [len(self._ids[row]) for row in rows], self._engine.device
        shares = torch.tensor([1.0 / len(chosen[run]) for run in of.tolist()], device=device)
        leaf = z.detach().requires_grad_(True)

        def of_part(part: slice) -> tuple[Tensor, np.ndarray]:
            ids = [self._ids[row] for row in rows[part]]
            present, whose = np.unique(of[part], return_inverse=True)  # only their adapters are generated
            tries = [self._tries[run] for run in present.tolist()]
            scores = self._engine.log_probabilities(ids, leaf[present], tries, torch.from_numpy(whose))
            labels = self._wanted[rows[part]]
            losses = -(labels * scores[:, : labels.shape[1]]).sum(-1) * shares[part]  # (B,)
            (moved,) = torch.autograd.grad(losses.sum(), leaf)
            return moved, losses.detach().cpu().numpy()

        def of_all() -> tuple[Tensor, np.ndarray, list[slice]]:
            parts = self._at_once.parts_of_like_length(lengths, device)
            gradient, losses = torch.zeros_like(leaf), np.zeros(len(chosen))
            for part, (moved, result) in zip(parts, side_by_side(device, of_part, parts), strict=True):
                gradient += moved
                np.add.at(losses, of[part], result)
            return gradient, losses, parts

        gradient, losses, parts = self._at_once.fitting(len(rows), of_all)
        for part in parts:
            self.padding.count(lengths[part])
        return gradient, losses


class Padding:
    """Counts the padding among the token positions of batches."""

    def __init__(self) -> None:
        self._real = self._all = 0

    def count(self, lengths: Sequence[int]) -> None:
        """Count rows of these lengths that went through the model together."""
        self._real += sum(lengths)
        self._all += len(lengths) * max(lengths)

    @property
    def share(self) -> float:
        """Padding positions / all positions; 0 before the first batch."""
        return 1.0 - self._real / self._all if self._all else 0.0
