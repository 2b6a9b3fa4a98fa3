"""LoRA of many tasks by PEFT: every task's in memory, or the most recent ones only."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch

LORA_RANK: Final = 8
SLOTS: Final = 25  # adapters that a server keeps where they do not all fit


def lora(backbone: Any, tasks: int) -> Any:
    """A T5 with LoRA of so many tasks, whose two matrices are both random."""
    from peft import LoraConfig, TaskType, get_peft_model
    from peft.tuners.lora import LoraLayer

    config = LoraConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, r=LORA_RANK, lora_alpha=16, target_modules=["q", "v"], init_lora_weights=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT uses a name that transformers is about to change
        model = get_peft_model(backbone, config, adapter_name=name_of(0))
    for module in model.modules():
        if isinstance(module, LoraLayer):
            for task in range(1, tasks):
                _add(module, name_of(task))
    model.peft_config.update({name_of(task): config for task in range(1, tasks)})
    return model.eval().requires_grad_(False)


def _add(layer: Any, name: str) -> None:
    """The layer of PEFT's `add_adapter`; it looks at all that are there each time, which takes hours."""
    first = name_of(0)
    for parts in (layer.lora_A, layer.lora_B):
        like = parts[first]
        parts[name] = torch.nn.Linear(like.in_features, like.out_features, bias=False)
    layer.lora_dropout[name] = torch.nn.Identity()
    for facts in (layer.r, layer.lora_alpha, layer.scaling, layer.use_dora, layer.use_rslora, layer.lora_bias):
        facts[name] = facts[first]


def lora_bytes(backbone: Any) -> int:
    """Of the LoRA of one task, float32."""
    shapes = (module.weight.shape for name, module in backbone.named_modules() if name.rpartition(".")[2] in ("q", "v"))
    return sum(4 * LORA_RANK * sum(shape) for shape in shapes)


def name_of(task: int) -> str:
    """Of a task's adapter."""
    return f"task{task}"


def names_of(tasks: Iterable[int]) -> list[str]:
    """Of these adapters."""
    return [name_of(task) for task in tasks]


class RecentLoras:
    """As many adapters as there are slots; another task's weights are written over those that were used longest ago.

    That is less than a server does that reads them from a disk, and as little as PEFT can do: nothing is built again.

    Args:
        model: of PEFT with an adapter a slot.
        stored: (T, numbers) float32, weights of every task.
    """

    def __init__(self, model: Any, stored: torch.Tensor) -> None:
        self._stored = stored
        self._slots = [_weights_of(model, slot) for slot in range(len(model.peft_config))]
        self._held: OrderedDict[int, int] = OrderedDict()  # slot by task, used longest ago first

    def parts(self, tasks: np.ndarray) -> list[np.ndarray]:
        """Which rows go together: those of as many tasks as there are slots (rows,)."""
        names = list(dict.fromkeys(tasks.tolist()))
        most = len(self._slots)
        return [np.flatnonzero(np.isin(tasks, names[start : start + most])) for start in range(0, len(names), most)]

    @torch.inference_mode()
    def slots_of(self, tasks: np.ndarray) -> list[int]:
        """The slot of each row's task; missing files are written there."""
        for task in dict.fromkeys(tasks.tolist()):
            if task in self._held:
                self._held.move_to_end(task)
                continue
            full = len(self._held) == len(self._slots)
            slot = self._held.popitem(last=False)[1] if full else len(self._held)
            self._held[task] = slot
            weights = self._slots[slot]
            sizes = [weight.numel() for weight in weights]
            parts = torch.split(self._stored[task % len(self._stored)], sizes)
            torch._foreach_copy_(weights, [part.view_as(weight) for part, weight in zip(parts, weights, strict=True)])
        return [self._held[task] for task in tasks.tolist()]


def stored_loras(backbone: Any, tasks: int, most_bytes: float) -> torch.Tensor:
    """Weights of so many tasks, or of as many as fit: further tasks take theirs in turn (tasks, numbers) float32."""
    size = lora_bytes(backbone) // 4
    fitting = max(SLOTS + 1, min(tasks, int(most_bytes / (4 * size))))
    return torch.randn(fitting, size) / 16


def _weights_of(model: Any, slot: int) -> list[torch.Tensor]:
    return [weight for name, weight in model.named_parameters() if f".{name_of(slot)}." in name]
