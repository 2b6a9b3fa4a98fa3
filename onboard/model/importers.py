"""Models of other code as modules: what the authors' two repositories save, hyperformer and compacter."""

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

    What the authors train requires a gradient (embeddings, hypernetwork, T5 norms); everything else is frozen.

    Args:
        backbone: a stock T5; it gets attached.
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
        """Teacher forcing, each row under its own task's adapters.

        Args:
            input_ids: (B, S).
            attention_mask: (B, S).
            labels: (B, target length), −100 where nothing is asked.
            tasks: the task of each row by name.

        Returns:
            transformers' Seq2SeqLMOutput with `loss` (mean cross entropy) and `logits`.

        Raises:
            NotFoundError: a task has no embedding here.
            ValueError: the number of tasks is not the number of rows.
        """
        if len(tasks) != input_ids.shape[0]:
            raise ValueError(f"{input_ids.shape[0]} rows, but {len(tasks)} tasks")
        present = list(dict.fromkeys(tasks))
        if unknown := [name for name in present if name not in self.embeddings]:
            raise NotFoundError("embedding-not-in-checkpoint", unknown=list(unknown), tasks=list(self.tasks))
        generated = self.hypernetwork(torch.stack([self.embeddings[name] for name in present]))
        rows = torch.tensor([present.index(name) for name in tasks])
        with self.attachment.using(generated, rows):
            return self.backbone(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


def load_hyperformer(folder: str | Path) -> HyperFormer:
    """A checkpoint of HyperFormer or HyperFormer++ as a module; see `read_checkpoint` for the files and the errors."""
    checkpoint = read_checkpoint(folder)
    return HyperFormer(checkpoint.backbone, checkpoint.hypernetwork, checkpoint.embeddings).eval()


class SingleTask(nn.Module):
    """A frozen T5 with the parameters of one task, which alone require a gradient.

    Args:
        backbone: a stock T5; it gets attached.
        module: the task's own parameters, made for this backbone.
        task: its name.
    """

    def __init__(self, backbone: Any, module: TaskModule, task: str) -> None:
        super().__init__()
        self.backbone = freeze(backbone)
        self.module, self.task = module, task
        self.attachment = attach(backbone)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor, tasks: Sequence[str] | None = None
    ) -> Any:
        """Teacher forcing, every row under the task.

        Args:
            input_ids: (B, S).
            attention_mask: (B, S).
            labels: (B, target length), −100 where nothing is asked.
            tasks: the task of each row by name, as of `HyperFormer`; None: this one.

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
        """The gradient of every part that has one, by the name that the authors give it."""
        return self.module.official_gradients(self.task)


def load_compacter(folder: str | Path) -> SingleTask:
    """A checkpoint of rabeehk/compacter as a module; see `read_task_checkpoint` for the files and the errors."""
    checkpoint = read_task_checkpoint(folder)
    return SingleTask(checkpoint.backbone, checkpoint.module, checkpoint.task).eval()
