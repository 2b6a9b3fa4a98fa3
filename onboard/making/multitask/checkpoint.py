"""Checkpoints of a training stage: safetensors, written to a temporary file, synced and renamed.

So the last good checkpoint survives a full disk or a power cut.

Batches only depend on (seed, step). Weights, optimizer state and the step therefore suffice to resume with the same
bits as an uninterrupted run (on CPU).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as to_bytes
from torch import nn

from onboard.domain.private import open_new, part_beside
from onboard.errors import ConflictError, NotFoundError, StorageError
from onboard.model.weights import read_tensors

EVERY_SECONDS = 120.0
_ABSENT = object()


class StageCheckpoint:
    """Saves and restores named modules, one optimizer and the step of a stage in one file.

    Args:
        optimiser: Adam or AdamW over the modules' parameters.
        settings: JSON-compatible settings of the stage; a checkpoint with other settings is refused.
    """

    def __init__(
        self,
        path: Path,
        modules: Mapping[str, nn.Module],
        optimiser: torch.optim.Optimizer,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self._modules, self._optimiser = modules, optimiser
        self._settings: dict[str, Any] = json.loads(json.dumps(settings or {}))
        self._saved_at = time.monotonic()

    def restore(self) -> int:
        """Load the checkpoint if it exists. Returns the next step (0 without one).

        Raises:
            ConflictError: it was made with other settings; the error names the first field that differs.
            DamagedError: it cannot be read.
        """
        if not self.path.is_file():
            return 0
        tensors, metadata = read_tensors(self.path)
        self._require_same(json.loads(metadata["settings"]))
        load_modules(self._modules, tensors)
        self._restore_optimiser(tensors)
        return int(metadata["step"])

    def save(self, step: int) -> None:
        """Write a checkpoint to resume at `step`.

        Raises:
            StorageError: it cannot be written; the previous one is intact.
        """
        tensors = module_tensors(self._modules)
        for index, state in enumerate(self._states()):
            tensors |= {f"optimiser.{index}.{key}": value.detach() for key, value in state.items()}
        _write_whole(self.path, tensors, {"step": str(step), "settings": json.dumps(self._settings)})
        self._saved_at = time.monotonic()

    def save_if_due(self, step: int) -> None:
        """Save if the last checkpoint is two minutes old."""
        if time.monotonic() - self._saved_at > EVERY_SECONDS:
            self.save(step)

    def _require_same(self, stored: Mapping[str, Any]) -> None:
        field = first_difference(stored, self._settings)
        if field is None:
            return
        was, now = (dict(_fields(document)).get(field, "nothing") for document in (stored, self._settings))
        raise ConflictError("checkpoint-of-other-recipe", field=field, path=self.path, was=was, now=now)

    def _parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self._optimiser.param_groups for parameter in group["params"]]

    def _states(self) -> list[dict[str, torch.Tensor]]:
        return [dict(self._optimiser.state.get(parameter, {})) for parameter in self._parameters()]

    def _restore_optimiser(self, tensors: Mapping[str, torch.Tensor]) -> None:
        for index, parameter in enumerate(self._parameters()):
            prefix = f"optimiser.{index}."
            state = {
                key.removeprefix(prefix): value.to(parameter.device, copy=True)
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
            if state:
                self._optimiser.state[parameter] = state


class BestWeights:
    """The modules' weights at the best validation so far, stored apart from the last checkpoint."""

    def __init__(self, path: Path, modules: Mapping[str, nn.Module]) -> None:
        self._path, self._modules = path, modules
        self.step, self.mean = -1, float("-inf")

    def restore(self) -> None:
        """Read the best step so far, if there is one."""
        if self._path.is_file():
            _, metadata = read_tensors(self._path)
            self.step, self.mean = int(metadata["step"]), float(metadata["mean"])

    def forget(self) -> None:
        """Delete the file of an earlier run."""
        self._path.unlink(missing_ok=True)

    def offer(self, step: int, mean: float) -> bool:
        """Save the current weights if they are better than all before. Returns whether they are."""
        if mean <= self.mean:
            return False
        _write_whole(self._path, module_tensors(self._modules), {"step": str(step), "mean": repr(mean)})
        self.step, self.mean = step, mean
        return True

    def load(self) -> None:
        """Load the best weights into the modules."""
        load_modules(self._modules, read_tensors(self._path)[0])


def require_checkpoint(work: Path) -> None:
    """Check that `--resume` is possible.

    Raises:
        NotFoundError: the folder contains no checkpoint.
    """
    if not any(work.glob("*.safetensors")):
        raise NotFoundError("training-checkpoint-missing", work=work)


def module_tensors(modules: Mapping[str, nn.Module]) -> dict[str, torch.Tensor]:
    """Return all weights of named modules in one dictionary."""
    return {
        f"module.{name}.{key}": value.detach()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }


def load_modules(modules: Mapping[str, nn.Module], tensors: Mapping[str, torch.Tensor]) -> None:
    """Load weights from a result of `module_tensors`."""
    for name, module in modules.items():
        prefix = f"module.{name}."
        state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        module.load_state_dict(state)


def _write_whole(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file atomically.

    Raises:
        StorageError: it cannot be written; the previous file is intact.
    """
    content = to_bytes({key: value.cpu().clone().contiguous() for key, value in tensors.items()}, dict(metadata))
    temporary = part_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_new(temporary) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        whole = f" The last good one, {path.name}, is whole." if path.is_file() else ""
        raise StorageError(
            "checkpoint-not-writable",
            mebibytes=len(content) >> 20,
            folder=path.parent,
            reason=error.strerror,
            whole=whole,
        ) from error


def first_difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return the dotted name of the first field that differs, in the order of the second document; None if equal."""
    old, new = dict(_fields(was)), dict(_fields(now))
    return next((key for key in (*new, *old) if old.get(key, _ABSENT) != new.get(key, _ABSENT)), None)


def _fields(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from _fields(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
