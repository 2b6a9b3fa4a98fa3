"""Multi-task training with a small budget: its options, the training, the score."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.harness.command import DATA, command_line
from bench.harness.source_folders import read_source
from onboard.bases import find_base
from onboard.data.regression import Buckets
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
from onboard.making.curriculum import Batch, Source
from onboard.making.multitask.loop import Running, TrainingStage, run_stage
from onboard.making.multitask.loss import Groups, Sampling, ScoresOf, multitask_loss
from onboard.making.multitask.processes import Processes
from onboard.making.multitask.recipe import Schedule
from onboard.making.multitask.validation import HeldOut
from onboard.model.initialisation import is_projector

TEMPERATURE = 10.0  # of the tasks' sampling, as the paper has it
SMOOTHING = 0.1  # of the labels, as the authors have it
SCORED_AT_ONCE = 64
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Budget:
    """The budget of every variant: optimizer steps of all its tasks together, rows per step, and dtype."""

    steps: int
    batch: int
    precision: str = "fp32"

    @classmethod
    def asked_for(cls, asked: argparse.Namespace) -> Budget:
        """The budget of a command line."""
        return cls(asked.steps, asked.batch, asked.precision)


@dataclass(frozen=True)
class Method:
    """The trained parts, and how it scores.

    Args:
        modules: every weight that gets a gradient.
        scores_of: log-probabilities (B, K) of a batch and the number of its task.
        projector_rate: multiple of the learning rate for the projector of a hypernetwork.
    """

    modules: Mapping[str, nn.Module]
    scores_of: ScoresOf
    projector_rate: float = 1.0

    @property
    def trained(self) -> list[nn.Parameter]:
        """All that gets a gradient."""
        return [parameter for parameters, _ in self.groups for parameter in parameters]

    @property
    def groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """The same by multiples of the learning rate."""
        parts: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
        for module in self.modules.values():
            for name, parameter in module.named_parameters():
                parts[is_projector(name)].append(parameter)
        others, projectors = parts
        return [(others, 1.0), (projectors, self.projector_rate)]


def training_command(description: str | None, name: str, *, steps: int, seeds: int) -> argparse.ArgumentParser:
    """The options that such benches have in common.

    Args:
        description: for --help.
        name: of the bench, and of the files that it writes.
        steps, seeds: where nothing else is requested.
    """
    parser = command_line(description, name)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--sources", type=Path, default=DATA / "source")
    parser.add_argument("--seeds", type=int, default=seeds, help="runs of each, one a seed")
    parser.add_argument("--steps", type=int, default=steps, help="optimiser steps of a run, all tasks together")
    parser.add_argument("--batch", type=int, default=16, help="rows a step")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--processes", type=int, default=2, help="runs at a time, a thread each")
    return parser


def settings_of(asked: argparse.Namespace) -> dict[str, Any]:
    """The settings that the numbers of every such bench depend on."""
    return {
        "base": find_base(asked.base).digest, "budget": asdict(Budget.asked_for(asked)),
        "sources": sorted(path.name for path in asked.sources.iterdir() if path.is_dir()),
    }  # fmt: skip


@lru_cache(1)
def sources_of(folder: Path) -> tuple[Source, ...]:
    """The source tasks of a folder, read once a process."""
    return tuple(read_source(path) for path in sorted(folder.iterdir()) if path.is_dir())


def train(
    method: Method, groups: Groups, budget: Budget, learning_rate: float, seed: int, unsmoothed: Collection[str] = ()
) -> None:
    """Train for the budget: AdamW, linear after a warm-up of a twentieth, one task a step (arXiv 2106.04489, Eq. 2).

    Args:
        method: the trained parts.
        groups: tasks with shares of the steps.
        budget: steps and rows.
        learning_rate: at the end of the warm-up.
        seed: of the draws of tasks.
        unsmoothed: names of regressions.
    """
    sampling = Sampling(groups, budget.steps, budget.batch, TEMPERATURE, seed)
    schedule = Schedule(
        steps=budget.steps, batch=budget.batch, learning_rate=learning_rate, warmup_steps=budget.steps // 20
    )
    alone = Processes(0, 1, torch.device("cpu"))
    loss_of = multitask_loss(method.scores_of, sampling, PRECISIONS[budget.precision], alone, SMOOTHING, unsmoothed)
    with TemporaryDirectory() as work:
        stage = TrainingStage("budgeted", schedule, method.modules, method.groups, loss_of, {})
        run_stage(stage, Running(Path(work), lambda _: None, alone))


@torch.no_grad()
def score(method: Method, task: int, held: HeldOut, metric: str) -> float:
    """A metric of held-out rows, times 100."""
    probabilities = np.empty((len(held.ids), held.trie.labels))
    order = np.argsort([len(ids) for ids in held.ids], kind="stable")
    for start in range(0, len(order), SCORED_AT_ONCE):
        chosen = order[start : start + SCORED_AT_ONCE]
        rows = Batch([held.ids[row] for row in chosen], held.trie, np.empty(0, dtype=np.float32))
        probabilities[chosen] = method.scores_of([rows], [task], 0)[0].double().exp().numpy()
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    source = held.source
    if source.low is not None and source.high is not None:
        predicted = probabilities @ np.array(Buckets(source.low, source.high).values)
        return 100.0 * evaluate_regression(held.true, predicted)[metric].value
    return 100.0 * evaluate_classification(held.true, probabilities, metric)[metric].value
