"""The files of a measurement: its numbers as JSON, what they were made on, and the page that shows them."""

from __future__ import annotations

import json
import os
import platform
from argparse import Namespace
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """The machine, without names or paths: processor, cores, system and the versions that matter."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.is_file()
        else []
    )
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in ("torch", "transformers", "onboard")},
    }


def made_by(command: str, device: str = "cpu") -> dict[str, Any]:
    """How every document begins: the command that makes it again, and what it was made on, a GPU's name included."""
    machine = describe()
    return {"command": command, "machine": machine if device == "cpu" else {**machine, "gpu": device_name(device)}}


def device_name(device: str) -> str:
    """The name of the GPU cuda or cuda:N; cpu is cpu."""
    if device == "cpu":
        return device
    import torch

    return torch.cuda.get_device_name(torch.device(device))


def report(document: dict[str, Any], asked: Namespace, page: Callable[[dict[str, Any]], str]) -> int:
    """Print the page; write the numbers and it where the command line names files.

    Returns:
        The exit code: 1 where the document says that a target was missed.
    """
    text = page(document)
    print(text)
    write(document, asked.output, text, asked.table)
    return 0 if document.get("kept", True) else 1


def as_json(document: dict[str, Any]) -> str:
    """The numbers as they are written."""
    return json.dumps(document, indent=1)


def write(document: dict[str, Any], output: Path | None, page: str = "", table: Path | None = None) -> None:
    """Write the numbers and the page, each where a file is named for it."""
    for path, text in ((output, as_json(document) + "\n"), (table, page)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
