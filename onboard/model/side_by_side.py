"""Several task embeddings trained at once, as rows of one batch: seeds, folds or starts side by side.

Each has a start, label words and rows of its own; the model sees them together, and none touches another's gradient:
the loss is a sum of what each would have alone, and Adam works number by number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import torch
from torch import Tensor

from onboard.errors import JobFailedError
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie

AT_ONCE: Final = 32  # rows that go through the model together: more of them are padded more, and no faster on a CPU
PART_COSTS: Final = {"cpu": 64}  # tokens that could be computed while one more part is begun: of `mini` on one core
PART_COSTS_ELSEWHERE: Final = 8192  # a GPU has them for nothing


@dataclass(frozen=True)
class Steps:
    """How embeddings are moved.

    Args:
        learning_rate: of Adam, constant; inputs of so few numbers want far more than weights do.
        pull: weight of ‖z − start‖² in the loss, per nat; 0 lets z go.
        averaged_share: the result is the mean of z over this last share of the steps.
        norm_per_root: bound of ‖z‖ as a multiple of √t; a large z drowns layer and position ids in the conditioning.
    """

    learning_rate: float
    pull: float = 0.0
    averaged_share: float = 0.25
    norm_per_root: float = 2.0


@dataclass(frozen=True)
class Run:
    """One embedding that is trained.

    Args:
        start: (t,) where z starts.
        trie: of K label words.
        batches: row indices of each step; all runs that are trained together have as many.
    """

    start: np.ndarray
    trie: LabelTrie
    batches: Sequence[np.ndarray]


@dataclass(frozen=True)
class Moved:
    """What came of a run.

    Args:
        z: (t,) float32.
        losses: training loss of each step, nats.
        course: (steps, t) z after each step.
        padding_share: share of padding among all token positions that were computed, of all runs together.
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
    runs: Sequence[Run],
    ids: Sequence[Sequence[int]],
    targets: np.ndarray,
    steps: Steps,
    on_step: Callable[[int, float], None] = lambda *_: None,
    at_once: RowsAtOnce | None = None,
) -> list[Moved]:
    """Minimise the loss that is scored; only the z move. The same bytes for the same arguments on a CPU.

    Where a batch does not fit into a GPU's memory, the gradients of its parts are added up: the same but for rounding.

    Args:
        engine: frozen backbone and hypernetwork.
        runs: S embeddings to be trained.
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K); all runs have K words.
        steps: how they are moved.
        on_step: told step (from 1) and mean loss; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Raises:
        JobFailedError: a loss is not finite.
        OutOfMemoryError: the GPU has no room for a single row.
    """
    at_once = at_once or RowsAtOnce(AT_ONCE)
    padding, part_costs = Padding(), PART_COSTS.get(engine.device.type, PART_COSTS_ELSEWHERE)
    start = torch.from_numpy(np.stack([run.start for run in runs])).float().to(engine.device)  # (S, t)
    z = start.clone().requires_grad_(True)
    wanted = torch.from_numpy(np.ascontiguousarray(targets, dtype=np.float32)).to(engine.device)
    optimiser = torch.optim.Adam([z], lr=steps.learning_rate)
    bound, count = steps.norm_per_root * z.shape[1] ** 0.5, len(runs[0].batches)
    first_averaged = count - max(1, round(count * steps.averaged_share))
    tries, summed = [run.trie for run in runs], torch.zeros_like(start)
    losses, course = np.zeros((count, len(runs))), np.zeros((count, *start.shape), dtype=np.float32)

    def parts_of(rows: np.ndarray) -> list[slice]:
        return at_once.parts_of_like_length([len(ids[row]) for row in rows], part_costs)

    def gradient(rows: np.ndarray, of: np.ndarray, weights: Tensor) -> np.ndarray:
        """Leaves the gradient of all runs' mean losses in z, and returns the losses (S,)."""
        optimiser.zero_grad()
        found = np.zeros(len(runs))
        for part in parts_of(rows):
            taken, whose = rows[part], of[part]
            scores = engine.log_probabilities([ids[row] for row in taken], z, tries, torch.from_numpy(whose))
            each = -(wanted[taken] * scores[:, : wanted.shape[1]]).sum(-1) * weights[part]  # (B,)
            each.sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            np.add.at(found, whose, each.detach().cpu().numpy())
        return found

    for step in range(count):
        chosen = [run.batches[step] for run in runs]
        rows, of = np.concatenate(chosen), np.repeat(np.arange(len(runs)), [len(each) for each in chosen])
        order = np.argsort([len(ids[row]) for row in rows], kind="stable")
        rows, of = rows[order], of[order]
        weights = torch.tensor([1.0 / len(chosen[run]) for run in of], device=engine.device)
        losses[step] = at_once.fitting(len(rows), partial(gradient, rows, of, weights))
        if not np.isfinite(losses[step]).all():
            raise JobFailedError(f"The training loss became {losses[step].max()} at step {step + 1}.", _OTHER_SEED)
        for part in parts_of(rows):
            padding.count([ids[row] for row in rows[part]])
        with torch.no_grad():
            assert z.grad is not None
            z.grad += 2.0 * steps.pull * (z - start)
            optimiser.step()
            z.mul_(torch.clamp(bound / z.norm(dim=1, keepdim=True), max=1.0))
            if step >= first_averaged:
                summed += z
            course[step] = z.cpu().numpy()
        on_step(step + 1, float(losses[step].mean()))
    averaged = (summed / (count - first_averaged)).cpu().numpy()
    return [
        Moved(averaged[run], tuple(losses[:, run].tolist()), course[:, run], padding.share) for run in range(len(runs))
    ]


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


_OTHER_SEED = "submit again with another --seed"
