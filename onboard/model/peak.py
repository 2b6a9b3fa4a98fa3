"""Peak memory since a moment: of the GPU by PyTorch, on a CPU of the whole process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import torch

_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")  # Linux only
_RESET_PEAK: Final = "5"
_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class PeakMemory:
    """Starts to measure when it is created."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._reset = device, True
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            return
        try:
            _RESET.write_text(_RESET_PEAK, encoding="ascii")
        except OSError:  # another system, or no permission
            self._reset = False

    @property
    def most_bytes(self) -> int | None:
        """Peak memory since then; None if the system does not report it."""
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        try:
            line = _PEAK.search(_STATUS.read_text(encoding="ascii")) if self._reset else None
        except OSError:
            return None
        return None if line is None else 1024 * int(line[1])
