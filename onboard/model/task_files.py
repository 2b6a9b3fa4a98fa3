"""Tasks with parameters of their own: what their stored tensors need beside them, and how they are made again."""

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
    """The metadata beside a task's tensors: format, method and settings, which make the same module again."""
    return {
        "format": WEIGHTS_FORMAT, "method": module.METHOD, "settings": json.dumps(module.settings, sort_keys=True)
    }  # fmt: skip


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
