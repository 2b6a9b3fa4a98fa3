"""The multi-task loss (arXiv 2106.04489, Eq. 2): one or several tasks per step, each with its embedding's adapters.

The loss is the cross-entropy over the distribution of the task's labels. Label smoothing therefore spreads its share
over those labels, not over the vocabulary. It does not apply to regressions: their targets are already soft, and
smoothing would pull every expectation to the middle of the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import torch
from torch import nn

from onboard.making.curriculum.batch import TrainingTask
from onboard.making.curriculum.source import Source
from onboard.making.multitask.loop import LossOf, StepLoss
from onboard.making.multitask.processes import Processes
from onboard.model.batch import Batch
from onboard.model.engine import Engine

Groups = tuple[tuple[tuple[TrainingTask, ...], float], ...]
EmbeddingsOf = Callable[[Sequence[int], int], torch.Tensor]  # of m tasks at a step: (m, t)
ScoresOf = Callable[[Sequence[Batch], Sequence[int], int], Sequence[torch.Tensor]]


class DrawnByRows(Protocol):
    """Something drawn in proportion to its rows: a training task, or a source of episodes."""

    @property
    def name(self) -> str:
        """The key of its weight and family."""

    @property
    def rows(self) -> int:
        """The number of its rows."""


@dataclass(frozen=True)
class Balance:
    """Adjustments of the shares that tasks have by their rows.

    Args:
        weights: factors on the number of steps by task name; 1 for others.
        families: families by task name.
        most: largest share of its group for one family.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)
    most: float = 1.0

    @classmethod
    def of(cls, sources: Sequence[Source], most: float) -> Balance:
        """Return the balance with the sources' weights and families."""
        families = {source.name: source.about.family for source in sources if source.about.family}
        return cls({source.name: source.about.weight for source in sources}, families, most)

    def shares(self, tasks: Sequence[DrawnByRows], temperature: float) -> np.ndarray:
        """Return shares (m,) of a group by weight · rows^(1/temperature), with limited families."""
        weights = np.array([self.weights.get(task.name, 1.0) * task.rows ** (1 / temperature) for task in tasks])
        shares: np.ndarray = weights / weights.sum()
        names = [self.families.get(task.name, "") for task in tasks]
        families = [np.array([name == family for name in names]) for family in dict.fromkeys(names) if family]
        # a lower limit could not be met by all families together
        most = max(self.most, 1.0 / max(1, len(families) + ("" in names)))
        bounded = np.zeros(len(shares), dtype=bool)
        for _ in families:
            over = [mine for mine in families if not bounded[mine].any() and shares[mine].sum() > most]
            if not over:
                break
            for mine in over:
                shares[mine] *= most / shares[mine].sum()
                bounded |= mine
            free = ~bounded
            if free.any():
                shares[free] *= (1.0 - shares[bounded].sum()) / shares[free].sum()
        return shares


EVEN: Final = Balance()


def task_probabilities(groups: Groups, temperature: float, balance: Balance = EVEN) -> np.ndarray:
    """Return probabilities: the groups' shares, divided by balance within each group. They sum to one."""
    parts = [share * balance.shares(group, temperature) for group, share in groups]
    joined = np.concatenate(parts)
    probabilities: np.ndarray = joined / joined.sum()
    return probabilities


def turns(probabilities: np.ndarray, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the task of each step (steps,), and how often that task was trained before (steps,)."""
    tasks = np.random.default_rng((seed, 5)).choice(len(probabilities), size=steps, p=probabilities)
    before = np.zeros(steps, dtype=np.int64)
    for task in range(len(probabilities)):
        steps_of_task = np.flatnonzero(tasks == task)
        before[steps_of_task] = np.arange(len(steps_of_task))
    return tasks, before


def precision_of(name: str, device: torch.device) -> torch.dtype:
    """Return the compute type: bfloat16 or float32; `auto` is bfloat16 if the GPU supports it."""
    if name == "bf16" or (name == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported()):
        return torch.bfloat16
    return torch.float32


@dataclass(frozen=True)
class Sampling:
    """How batches are drawn.

    Args:
        groups: the curriculum's tasks, with each group's share of the steps.
        steps: of the stage.
        batch: rows per step, over all processes.
        temperature: T.
        tasks_per_batch: tasks per step, drawn independently with equal shares of the rows.
        balance: of the tasks within a group.
    """

    groups: Groups
    steps: int
    batch: int
    temperature: float
    seed: int
    tasks_per_batch: int = 1
    balance: Balance = EVEN

    @property
    def tasks(self) -> list[TrainingTask]:
        """The tasks of all groups, in the order of the embeddings."""
        return [task for group, _ in self.groups for task in group]


def own_embeddings(embeddings: nn.ParameterList) -> EmbeddingsOf:
    """Return a function that gives each task its embedding at every step."""
    return lambda tasks, _: torch.cat([embeddings[task] for task in tasks])


def hypernetwork_scores(engine: Engine, embeddings_of: EmbeddingsOf) -> ScoresOf:
    """Return a function for log-probabilities with each task's adapters, all tasks in one pass."""

    def scores_of(drawn: Sequence[Batch], tasks: Sequence[int], step: int) -> list[torch.Tensor]:
        counts = [len(batch.ids) for batch in drawn]
        rows = torch.arange(len(drawn)).repeat_interleave(torch.tensor(counts))  # (B,)
        z = embeddings_of(tasks, step)  # (m, t)
        ids = [text for batch in drawn for text in batch.ids]
        scores = engine.log_probabilities(ids, z, [batch.trie for batch in drawn], rows)  # (B, K)
        return [part[:, : batch.trie.labels] for part, batch in zip(torch.split(scores, counts), drawn, strict=True)]

    return scores_of


def bare_scores(engine: Engine) -> ScoresOf:
    """Return a function for log-probabilities of the bare backbone; only label words distinguish the tasks."""
    return lambda drawn, *_: [engine.bare_log_probabilities(batch.ids, [batch.trie]) for batch in drawn]


def multitask_loss(
    scores_of: ScoresOf,
    sampling: Sampling,
    precision: torch.dtype,
    processes: Processes,
    smoothing: float = 0.0,
    unsmoothed: Collection[str] = (),
) -> LossOf:
    """Return the loss by step: the mean over its tasks of the mean over their rows. It depends on the step alone.

    Args:
        scores_of: returns log-probabilities (b, K) of each batch; called with batches, task indices and the step.
        processes: this process computes its share of the rows.
        smoothing: share of the target that is spread over the labels.
        unsmoothed: names of regressions.
    """
    tasks, together, device = sampling.tasks, sampling.tasks_per_batch, processes.device
    probabilities = task_probabilities(sampling.groups, sampling.temperature, sampling.balance)
    order, before = turns(probabilities, sampling.steps * together, sampling.seed)

    def loss_of(step: int) -> StepLoss:
        drawn = range(step * together, (step + 1) * together)
        task_indices = [int(order[turn]) for turn in drawn]
        whole = [tasks[order[turn]].batch(int(before[turn]), sampling.batch // together) for turn in drawn]
        shares = [_share(batch, processes) for batch in whole]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            scores = scores_of(shares, task_indices, step)  # m × (b, K), this process's rows
        parts = []
        for batch, mine, score, task in zip(whole, shares, scores, task_indices, strict=True):
            smoothed = smoothing and tasks[task].name not in unsmoothed
            targets = _smoothed(mine.targets, smoothing) if smoothed else mine.targets
            parts.append(-(torch.from_numpy(targets).to(device) * score.float()).sum() / len(batch.ids))
        names = ", ".join(tasks[task].name for task in task_indices)
        ids = [text for batch in whole for text in batch.ids]
        return StepLoss(torch.stack(parts).mean(), names, len(ids), sum(map(len, ids)))

    return loss_of


def _share(whole: Batch, processes: Processes) -> Batch:
    """Return this process's rows. If there are fewer rows than processes, some get a row without weight."""
    if processes.count == 1:
        return whole
    ids, targets = whole.ids[processes.rank :: processes.count], whole.targets[processes.rank :: processes.count]
    if not ids:
        ids, targets = whole.ids[:1], np.zeros_like(whole.targets[:1])
    return Batch(ids, whole.trie, targets)


def _smoothed(targets: np.ndarray, share: float) -> np.ndarray:
    """Return targets (B, K) with `share` of their mass spread evenly; rows without mass keep none."""
    mass = targets.sum(axis=1, keepdims=True)  # (B, 1)
    smoothed: np.ndarray = ((1 - share) * targets + share * mass / targets.shape[1]).astype(np.float32)
    return smoothed
