"""Tasks with parameters of their own as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onboard.model.task_files import described, task_of
from onboard.model.task_module import TaskModule
from onboard.model.weights import read_tensors, write_tensors


def save_task(module: TaskModule, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write a task's tensors, with its method and settings in the metadata."""
    write_tensors(module.state(), path, {**(metadata or {}), **described(module)})


def load_task(path: Path, backbone: Any) -> TaskModule:
    """The task of a file, for the backbone that it was learned on."""
    return task_of(*read_tensors(path), backbone)
