"""Store and restore tasks with task-specific parameters: metadata of the tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from onboard.domain.methods import WEIGHTS_FORMAT, require_weights_format
from onboard.errors import DamagedError, InputError
from onboard.model.methods import TASK_METHODS, new_task
from onboard.model.task_module import TaskModule


def described(module: TaskModule) -> dict[str, str]:
    """Return the metadata of a task's tensors: format, method and settings, from which the module can be rebuilt."""
    return {
        "format": WEIGHTS_FORMAT, "method": module.METHOD, "settings": json.dumps(module.settings, sort_keys=True)
    }  # fmt: skip


def task_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str], backbone: Any) -> TaskModule:
    """Rebuild a task from its stored tensors.

    Args:
        tensors: from `TaskModule.state`.
        metadata: from `described`; additional entries are ignored.
        backbone: the T5 that it was learned on.

    Raises:
        InputError: the weights are of another kind, of an unknown or comparison-only method, or the settings do not fit
            this backbone.
        DamagedError: the settings cannot be read, or a tensor does not match the method and backbone.
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
