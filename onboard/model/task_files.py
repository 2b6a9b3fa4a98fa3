"""Tasks with parameters of their own as safetensors files, byte for byte reproducible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from onboard.domain.methods import WEIGHTS_FORMAT, require_weights_format
from onboard.errors import DamagedError, InputError
from onboard.model.methods import TASK_METHODS, new_task
from onboard.model.task_module import TaskModule
from onboard.model.weights import read_tensors, write_tensors


def described(module: TaskModule) -> dict[str, str]:
    """The metadata beside a task's tensors: format, method and settings, which make the same module again."""
    return {
        "format": WEIGHTS_FORMAT, "method": module.METHOD, "settings": json.dumps(module.settings, sort_keys=True)
    }  # fmt: skip


def save_task(module: TaskModule, path: str | Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a task's tensors, with its method and settings in the metadata.

    Args:
        module: what is written.
        path: the file.
        metadata: more facts, strings.

    Raises:
        ConflictError: the method publishes nothing.
        StorageError: the file cannot be written.
    """
    write_tensors(module.state(), path, {**(metadata or {}), **described(module)})


def load_task(path: str | Path, backbone: Any) -> TaskModule:
    """The task of a file, for the backbone that it was learned on. Raises as `read_tensors` and `task_of`."""
    tensors, metadata = read_tensors(path)
    return task_of(tensors, metadata, backbone)


def task_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], backbone: Any) -> TaskModule:
    """A task of what was stored.

    Args:
        tensors: as `TaskModule.state` gives them.
        metadata: as `described` gives it; more does no harm.
        backbone: the T5 that it was learned on.

    Raises:
        InputError: the weights of something else, of a method that this version does not know or that is compared
            only, or of settings that do not fit this backbone.
        DamagedError: the settings cannot be read, or a tensor is not what the method has on this backbone.
    """
    require_weights_format(metadata)
    method = metadata.get("method", "")
    if method not in TASK_METHODS or not TASK_METHODS[method].PUBLISHES:
        raise InputError("weights-method-unknown", method=method)
    try:
        settings = json.loads(metadata["settings"])
    except (KeyError, ValueError) as error:
        raise DamagedError("stored-settings-unreadable", method=method, reason=error) from error
    if not isinstance(settings, dict):
        raise DamagedError("stored-settings-not-object", method=method)
    return new_task(method, backbone, settings).restore(tensors)
