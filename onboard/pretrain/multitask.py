"""Multi-task training (HyperFormer++, arXiv 2106.04489, Eq. 2): first everything together, then, with the backbone
rounded to its stored precision and frozen, the hypernetwork and the task embeddings alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from onboard.model.engine import Engine
from onboard.pretrain.curriculum import TrainingTask
from onboard.pretrain.recipe import HypernetworkSchedule, Schedule
from onboard.pretrain.stage import Say, run_stage

TEMPERATURE = 10.0
_PLAIN_SHARE = 0.4


def task_probabilities(tasks: Sequence[TrainingTask], sources: int) -> np.ndarray:
    """p_τ^(1/T) over the tasks with T = 10; the sources themselves and the topic levels get two fifths of the steps."""
    weights = np.array([task.rows for task in tasks], dtype=np.float64) ** (1 / TEMPERATURE)
    plain, made = weights[:sources], weights[sources:]
    if not len(made):
        return weights / weights.sum()
    return np.concatenate([_PLAIN_SHARE * plain / plain.sum(), (1 - _PLAIN_SHARE) * made / made.sum()])


def multitask_loss(
    engine: Engine, embeddings: nn.Embedding, tasks: Sequence[TrainingTask], sources: int, batch: int, seed: int
) -> Callable[[int], torch.Tensor]:
    """Cross-entropy of one task's batch under the locally renormalised label scores, by step."""
    probabilities = task_probabilities(tasks, sources)

    def loss_of(step: int) -> torch.Tensor:
        index = int(np.random.default_rng((seed, 5, step)).choice(len(tasks), p=probabilities))
        drawn = tasks[index].batch(step, batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = engine.log_probabilities(drawn.ids, embeddings.weight[index : index + 1], [drawn.trie], None)
        targets = torch.from_numpy(drawn.targets)
        return -(targets * scores.float()).sum(-1).mean()

    return loss_of


def train_together(
    engine: Engine,
    embeddings: nn.Embedding,
    loss_of: Callable[[int], torch.Tensor],
    schedule: Schedule,
    work: Path,
    say: Say,
) -> None:
    """Backbone, hypernetwork and embeddings; the latter two at twice the learning rate."""
    engine.backbone.requires_grad_(True)
    shared = [*engine.hypernetwork.parameters(), *embeddings.parameters()]
    modules = {"backbone": engine.backbone, "hypernetwork": engine.hypernetwork, "embeddings": embeddings}
    run_stage(
        "multitask", schedule, modules, [(list(engine.backbone.parameters()), 1.0), (shared, 2.0)], loss_of, work, say
    )
    engine.backbone.requires_grad_(False)


def train_hypernetwork(
    engine: Engine,
    embeddings: nn.Embedding,
    loss_of: Callable[[int], torch.Tensor],
    schedule: HypernetworkSchedule,
    work: Path,
    say: Say,
) -> None:
    """The frozen backbone as it will be stored; then hypernetwork and embeddings are rounded as well."""
    round_to_half(engine.backbone)
    modules = {"hypernetwork": engine.hypernetwork, "embeddings": embeddings}
    parameters = [*engine.hypernetwork.parameters(), *embeddings.parameters()]
    run_stage("hypernetwork", schedule, modules, [(parameters, 1.0)], loss_of, work, say)
    round_to_half(engine.hypernetwork)


@torch.no_grad()
def round_to_half(module: nn.Module) -> None:
    """Every parameter to the nearest float16, kept as float32: what is trained next is what will be shipped."""
    for parameter in module.parameters():
        parameter.copy_(parameter.half().float())
