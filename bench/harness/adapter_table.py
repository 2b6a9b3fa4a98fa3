"""Adapters as plain parameters: Adapters† of arXiv 2106.04489 for several tasks, single-task adapters for one."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights
from onboard.model.hypernetwork import POSITIONS, GeneratedAdapters
from onboard.model.initialisation import WEIGHT_STD


class StackTable(nn.Module):
    """The adapters of one stack.

    Each task's tensors are separate parameters: those of a task that is not in the batch have no gradient, so no
    momentum moves them.

    Args:
        d_model: h.
        layers: L.
        bottleneck: b.
        tasks: T.
    """

    _OWN = ("down", "down_bias", "up", "up_bias")  # per task; gamma and beta are shared by all tasks

    def __init__(self, *, d_model: int, layers: int, bottleneck: int, tasks: int) -> None:
        super().__init__()

        def table(*shape: int) -> nn.ParameterList:
            return nn.ParameterList(nn.Parameter(torch.empty(layers, POSITIONS, *shape)) for _ in range(tasks))

        self.down, self.down_bias = table(bottleneck, d_model), table(bottleneck)
        self.up, self.up_bias = table(d_model, bottleneck), table(d_model)
        self.gamma = nn.Parameter(torch.empty(layers, POSITIONS, d_model))
        self.beta = nn.Parameter(torch.empty(layers, POSITIONS, d_model))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """D and U are N(0, 0.01²), γ is 1, everything else 0, as the authors do."""
        for weight in (*self.down, *self.up):
            nn.init.normal_(weight, std=WEIGHT_STD)
        for weight in (*self.down_bias, *self.up_bias, self.beta):
            nn.init.zeros_(weight)
        nn.init.ones_(self.gamma)

    def forward(self, tasks: list[int]) -> AdapterWeights:
        """Numbers of n tasks → their weights with (n, L, 2) in front."""
        own = {name: torch.stack([self.get_parameter(f"{name}.{task}") for task in tasks]) for name in self._OWN}
        shared = {name: getattr(self, name).expand(len(tasks), -1, -1, -1) for name in ("gamma", "beta")}
        return AdapterWeights(**own, **shared)


class AdapterTable(nn.Module):
    """The adapters of T tasks, looked up by the task's number instead of generated from an embedding.

    Adapters† of the paper's tables: D, b_D, U, b_U per task; the adapters' layer norms (γ, β) are shared by all tasks,
    as are the T5 norms that are trained next to it. With one task it is the paper's single-task adapter.

    Args:
        d_model: h of the backbone.
        encoder_layers: L of the encoder.
        decoder_layers: L of the decoder.
        bottleneck: b.
        tasks: T.

    Attributes:
        METHOD: the method's name.
        sizes: the arguments.
    """

    METHOD: ClassVar[str] = "adapters"

    def __init__(self, *, d_model: int, encoder_layers: int, decoder_layers: int, bottleneck: int, tasks: int) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {
            "d_model": d_model, "encoder_layers": encoder_layers, "decoder_layers": decoder_layers,
            "bottleneck": bottleneck, "tasks": tasks,
        }  # fmt: skip
        self.encoder, self.decoder = (
            StackTable(d_model=d_model, layers=layers, bottleneck=bottleneck, tasks=tasks)
            for layers in (encoder_layers, decoder_layers)
        )

    def forward(self, tasks: Tensor) -> GeneratedAdapters:
        """The adapters of n tasks for both stacks, for `Attachment.using` and `Engine.score`.

        Args:
            tasks: (n,) LongTensor, their numbers from 0.

        Raises:
            ValueError: not a vector of integers, or a number without a task.
        """
        if tasks.dim() != 1 or tasks.is_floating_point():
            raise ValueError(f"tasks are looked up by a vector of integers, got {tasks.dtype} {tuple(tasks.shape)}")
        numbers: list[int] = tasks.tolist()
        if wrong := [number for number in numbers if not 0 <= number < self.sizes["tasks"]]:
            raise ValueError(f"there is no task {wrong[0]} among {self.sizes['tasks']}")
        return GeneratedAdapters(self.encoder(numbers), self.decoder(numbers))
