"""Facts about a worker's machine for those who watch it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from typing import Any, Final

import psutil

from onboard import __version__
from workers.gpu import GpuReader

_gpu: Final = GpuReader()


def facts(pids: Iterable[int], asked: str, device: str, gpu_uuid: str | None = None) -> dict[str, Any]:
    """Versions, resident memory of the processes `pids`, and the worker's GPU. Takes seconds at most.

    Args:
        asked: the device that the worker was started with: auto, cpu, cuda or cuda:N.
        device: the one that its model is on; `asked` until that is known. `gpu_uuid` likewise.
    """
    readings = _gpu.read(asked, device, gpu_uuid)
    return {
        "onboard": __version__,
        "python": platform.python_version(),
        "cpus": psutil.cpu_count(),
        "resident_bytes": sum(_resident_bytes(pid) for pid in pids),
        "gpus": readings.gpus,
        "gpu_reason": readings.reason,
    }


def device_in_use(asked: str) -> tuple[str, str | None] | None:
    """The device that torch takes for `asked`, and its GPU's UUID; None where torch is not loaded.

    Raises:
        UnavailableError: the device is not there.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    from onboard.bases.load import resolve_device

    device = resolve_device(asked)
    if device.type != "cuda":
        return device.type, None
    number = device.index or 0
    return f"cuda:{number}", f"GPU-{torch.cuda.get_device_properties(number).uuid}"


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # gone meanwhile, or not ours to look at
        return 0
