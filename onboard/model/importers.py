"""Modules that load checkpoints of the authors' repositories hyperformer and compacter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from onboard.errors import NotFoundError
from onboard.model.attach import attach
from onboard.model.backbone import freeze, norm_parameters
from onboard.model.compacter_repository import read_task_checkpoint
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.official import read_checkpoint
from onboard.model.task_module import TaskModule

__all__ = ["HyperFormer", "SingleTask", "load_compacter", "load_hyperformer"]


class HyperFormer(nn.Module):
    """A T5 with a hypernetwork and one embedding per task.

    Parameters that the authors train require gradients (embeddings, hypernetwork, T5 norms); all others are frozen.

    Args:
        backbone: a stock T5; adapters are attached to it.
        hypernetwork: made for this backbone.
        embeddings: z of every task, (t,) each.
    """

    def __init__(self, backbone: Any, hypernetwork: Hypernetwork, embeddings: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.backbone = freeze(backbone)
        self.hypernetwork = hypernetwork
        self.tasks = tuple(embeddings)
        self.embeddings = nn.ParameterDict({name: nn.Parameter(z) for name, z in embeddings.items()})
        self.attachment = attach(backbone)
        for parameter in norm_parameters(backbone):
            parameter.requires_grad_(True)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor, tasks: Sequence[str]) -> Any:
        """Run the model with teacher forcing; each row uses the adapters of its task.

        Args:
            input_ids: (B, S).
            attention_mask: (B, S).
            labels: (B, target length), −100 for ignored positions.
            tasks: the task of each row by name.

        Returns:
            transformers' Seq2SeqLMOutput with `loss` (mean cross entropy) and `logits`.

        Raises:
            NotFoundError: a task has no embedding.
            ValueError: the numbers of tasks and rows differ.
        """
        if len(tasks) != input_ids.shape[0]:
            raise ValueError(f"{input_ids.shape[0]} rows, but {len(tasks)} tasks")
        distinct = list(dict.fromkeys(tasks))
        if unknown := [name for name in distinct if name not in self.embeddings]:
            raise NotFoundError("embedding-not-in-checkpoint", unknown=list(unknown), tasks=list(self.tasks))
        generated = self.hypernetwork(torch.stack([self.embeddings[name] for name in distinct]))
        rows = torch.tensor([distinct.index(name) for name in tasks])
        with self.attachment.using(generated, rows):
            return self.backbone(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


def load_hyperformer(folder: str | Path) -> HyperFormer:
    """Load a checkpoint of HyperFormer or HyperFormer++ as a module; see `read_checkpoint` for files and errors."""
    checkpoint = read_checkpoint(folder)
    return HyperFormer(checkpoint.backbone, checkpoint.hypernetwork, checkpoint.embeddings).eval()


class SingleTask(nn.Module):
    """A frozen T5 with the trainable parameters of one task.

    Args:
        backbone: a stock T5; adapters are attached to it.
        module: the task-specific parameters, made for this backbone.
    """

    def __init__(self, backbone: Any, module: TaskModule, task: str) -> None:
        super().__init__()
        self.backbone = freeze(backbone)
        self.module, self.task = module, task
        self.attachment = attach(backbone)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor, tasks: Sequence[str] | None = None
    ) -> Any:
        """Run the model with teacher forcing; every row uses the task.

        Args:
            input_ids: (B, S).
            attention_mask: (B, S).
            labels: (B, target length), −100 for ignored positions.
            tasks: the task of each row by name, as in `HyperFormer`; None means this task.

        Returns:
            transformers' Seq2SeqLMOutput with `loss` (mean cross entropy) and `logits`.

        Raises:
            NotFoundError: another task is named.
        """
        if unknown := sorted(set(tasks or ()) - {self.task}):
            raise NotFoundError("parameters-not-in-checkpoint", unknown=list(unknown), task=self.task)
        with self.attachment.using(self.module.weights()):
            return self.backbone(input_ids=input_ids, attention_mask=attention_mask, labels=labels)

    def official_gradients(self) -> dict[str, Tensor]:
        """Return the gradients by the authors' names of the parameters."""
        return self.module.official_gradients(self.task)


def load_compacter(folder: str | Path) -> SingleTask:
    """Load a checkpoint of rabeehk/compacter as a module; see `read_task_checkpoint` for files and errors."""
    checkpoint = read_task_checkpoint(folder)
    return SingleTask(checkpoint.backbone, checkpoint.module, checkpoint.task).eval()
