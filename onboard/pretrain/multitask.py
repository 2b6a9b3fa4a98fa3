"""Multi-task training: first the backbone alone on the sources, as the original T5 was; then, with the backbone rounded
to its stored precision and frozen, hypernetwork and task embeddings (HyperFormer++, arXiv 2106.04489, Eq. 2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from onboard.model.engine import Engine
from onboard.pretrain.curriculum import Batch, Curriculum
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


def backbone_loss(engine: Engine, curriculum: Curriculum, batch: int, seed: int) -> Callable[[int], torch.Tensor]:
    """Cross-entropy of one task's batch under the bare backbone, by step; the label words tell the tasks apart."""
    return _loss(curriculum, batch, seed, lambda drawn, _: engine.bare_log_probabilities(drawn.ids, [drawn.trie]))


def hypernetwork_loss(
    engine: Engine, embeddings: nn.ParameterList, curriculum: Curriculum, batch: int, seed: int
) -> Callable[[int], torch.Tensor]:
    """Cross-entropy of one task's batch under its own embedding's adapters, by step."""
    return _loss(
        curriculum,
        batch,
        seed,
        lambda drawn, task: engine.log_probabilities(drawn.ids, embeddings[task], [drawn.trie]),
    )


def _loss(
    curriculum: Curriculum, batch: int, seed: int, scores_of: Callable[[Batch, int], torch.Tensor]
) -> Callable[[int], torch.Tensor]:
    tasks, probabilities = curriculum.tasks, task_probabilities(curriculum)

    def loss_of(step: int) -> torch.Tensor:
        task = int(np.random.default_rng((seed, 5, step)).choice(len(tasks), p=probabilities))
        drawn = tasks[task].batch(step, batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = scores_of(drawn, task)  # (B, K)
        return -(torch.from_numpy(drawn.targets) * scores.float()).sum(-1).mean()

    return loss_of


def train_backbone(
    engine: Engine, loss_of: Callable[[int], torch.Tensor], schedule: Schedule, work: Path, say: Say
) -> None:
    """All weights of the backbone; then it is rounded as it will be stored, and frozen."""
    engine.backbone.requires_grad_(True)
    parameters = list(engine.backbone.parameters())
    run_stage("multitask", schedule, {"backbone": engine.backbone}, [(parameters, 1.0)], loss_of, work, say)
    engine.backbone.requires_grad_(False)
    round_to_half(engine.backbone)


def train_hypernetwork(
    engine: Engine,
    embeddings: nn.ParameterList,
    loss_of: Callable[[int], torch.Tensor],
    schedule: Schedule,
    work: Path,
    say: Say,
) -> None:
    """Hypernetwork and embeddings on the frozen backbone; then the hypernetwork is rounded as it will be stored.

    Each embedding is a parameter of its own: one that is not in the batch has no gradient, so no momentum moves it.
    """
    modules = {"hypernetwork": engine.hypernetwork, "embeddings": embeddings}
    parameters = [*engine.hypernetwork.parameters(), *embeddings.parameters()]
    run_stage("hypernetwork", schedule, modules, [(parameters, 1.0)], loss_of, work, say)
    round_to_half(engine.hypernetwork)


@torch.no_grad()
def round_to_half(module: nn.Module) -> None:
    """Every parameter to the nearest float16, kept as float32: what is trained next is what will be shipped."""
    for parameter in module.parameters():
        parameter.copy_(parameter.half().float())
