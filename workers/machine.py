"""Facts about a worker's machine for those who watch it."""

from __future__ import annotations

import platform
import shutil
import socket
import subprocess
from collections.abc import Iterable
from typing import Any, Final

import psutil

from onboard import __version__

_GPU_SECONDS: Final = 5.0  # nvidia-smi hangs when a driver does
_GPU_FIELDS: Final = "name,memory.used,memory.total,utilization.gpu"
_MEBIBYTE: Final = 2**20


def host_name() -> str:
    """The name of this machine (or container)."""
    return socket.gethostname()


def is_alive(pid: int, born_before: float) -> bool:
    """Whether the process `pid` runs here. One born after `born_before` (epoch seconds) only has its number."""
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= born_before)
    except psutil.NoSuchProcess:
        return False


def facts(pids: Iterable[int]) -> dict[str, Any]:
    """Versions, resident memory of the processes `pids`, and the GPUs as nvidia-smi sees them."""
    return {
        "onboard": __version__,
        "python": platform.python_version(),
        "cpus": psutil.cpu_count(),
        "resident_bytes": sum(_resident_bytes(pid) for pid in pids),
        "gpus": _gpus(),
    }


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # gone meanwhile, or not ours to look at
        return 0


def _gpus() -> list[dict[str, Any]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_GPU_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [_gpu(line) for line in answer.stdout.splitlines() if line.strip()]


def _gpu(line: str) -> dict[str, Any]:
    name, used, total, busy = (part.strip() for part in line.split(","))
    return {
        "name": name,
        "memory_used_bytes": int(used) * _MEBIBYTE,
        "memory_total_bytes": int(total) * _MEBIBYTE,
        "utilization_ratio": int(busy) / 100 if busy.isdigit() else None,  # "[N/A]" where the driver does not count
    }
