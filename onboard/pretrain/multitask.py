"""Multi-task training (HyperFormer++, arXiv 2106.04489, Eq. 2): first everything together, then, with the backbone
rounded to its stored precision and frozen, the hypernetwork and the task embeddings alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from onboard.model.engine import Engine
from onboard.pretrain.curriculum import Curriculum
from onboard.pretrain.recipe import Schedule
from onboard.pretrain.stage import Say, run_stage

TEMPERATURE = 10.0


def task_probabilities(curriculum: Curriculum) -> np.ndarray:
    """The groups' shares, and p_τ^(1/T) with T = 10 over the tasks within each group."""
    parts = []
    for group, share in curriculum.groups:
        weights = np.array([task.rows for task in group], dtype=np.float64) ** (1 / TEMPERATURE)
        parts.append(share * weights / weights.sum())
    joined = np.concatenate(parts)
    probabilities: np.ndarray = joined / joined.sum()
    return probabilities


def multitask_loss(
    engine: Engine, embeddings: nn.Embedding, curriculum: Curriculum, batch: int, seed: int
) -> Callable[[int], torch.Tensor]:
    """Cross-entropy of one task's batch under the locally renormalised label scores, by step."""
    tasks, probabilities = curriculum.tasks, task_probabilities(curriculum)

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
    schedule: Schedule,
    work: Path,
    say: Say,
) -> None:
    """The frozen backbone as it will be stored; then the hypernetwork is rounded as well."""
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
