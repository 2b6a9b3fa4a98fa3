"""Checkpoints of a training stage: safetensors, written beside and renamed, so the last good one survives a full disk.

Batches are drawn from (seed, step) alone, so weights, optimiser state and the step are all that a resumed run needs to
give the same bits as one that was never interrupted (on CPU).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

_EVERY_SECONDS = 120.0


class Checkpoint:
    """Saves and restores named modules, one optimiser and the step of a stage in one file.

    Args:
        path: the checkpoint's file.
        modules: what is trained, by name.
        optimiser: Adam or AdamW over the modules' parameters.
    """

    def __init__(self, path: Path, modules: Mapping[str, nn.Module], optimiser: torch.optim.Optimizer) -> None:
        self._path = path
        self._modules = modules
        self._optimiser = optimiser
        self._saved_at = time.monotonic()

    def restore(self) -> int:
        """Load the checkpoint if there is one; returns the next step (0 without one)."""
        if not self._path.is_file():
            return 0
        with safe_open(self._path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # safe_open is no mapping
            step = int(json.loads(file.metadata()["step"]))
        for name, module in self._modules.items():
            prefix = f"module.{name}."
            module.load_state_dict(
                {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)},
                strict=False,
            )
        self._restore_optimiser(tensors)
        return step

    def save(self, step: int) -> None:
        """Write everything, to be resumed at `step`."""
        tensors = {
            f"module.{name}.{key}": value.detach().clone().contiguous()
            for name, module in self._modules.items()
            for key, value in module.state_dict().items()
        }
        for index, state in enumerate(self._states()):
            tensors |= {f"optimiser.{index}.{key}": value.detach().clone() for key, value in state.items()}
        temporary = self._path.with_suffix(".part")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, temporary, metadata={"step": json.dumps(step)})
        temporary.replace(self._path)
        self._saved_at = time.monotonic()

    def save_if_due(self, step: int) -> None:
        """Save when the last checkpoint is two minutes old."""
        if time.monotonic() - self._saved_at > _EVERY_SECONDS:
            self.save(step)

    def _parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self._optimiser.param_groups for parameter in group["params"]]

    def _states(self) -> list[dict[str, torch.Tensor]]:
        return [dict(self._optimiser.state.get(parameter, {})) for parameter in self._parameters()]

    def _restore_optimiser(self, tensors: Mapping[str, torch.Tensor]) -> None:
        for index, parameter in enumerate(self._parameters()):
            prefix = f"optimiser.{index}."
            state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
            if state:
                self._optimiser.state[parameter] = state
