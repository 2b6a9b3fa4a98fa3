"""The GPU that a worker's model is on, as NVML reads it: memory, utilisation, temperature; or why there is nothing.

NVML numbers the machine's GPUs; CUDA numbers those that CUDA_VISIBLE_DEVICES leaves. Once the model is loaded, the GPU
is known by its UUID. Before that it is found as CUDA would find it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onboard.settings import cuda_visible_devices

READ_SECONDS: Final = 2.0  # a driver that hangs must not hold up a heartbeat
PCI: Final = Path("/sys/bus/pci/devices")
_NVIDIA: Final = "0x10de"
_DISPLAY: Final = "0x03"  # class of display controllers, compute cards among them


@dataclass(frozen=True, slots=True)
class GpuReadings:
    """The state of a worker's GPU.

    Args:
        gpus: its GPU, or nothing. JSON-compatible: name, uuid, index (NVML's), found_by, memory_used_bytes,
            memory_total_bytes, utilization_ratio, temperature_celsius; null where the driver has no answer.
        reason: why a value is missing; None if nothing is.
    """

    gpus: list[dict[str, Any]]
    reason: str | None


class GpuReader:
    """Reads one GPU. NVML is loaded once, at the first reading; each reading runs in its own thread.

    Args:
        nvml: the module `pynvml`, or a fake of it.
        seconds: how long a reading may take.
    """

    def __init__(self, nvml: Any = None, seconds: float = READ_SECONDS) -> None:
        self._nvml = nvml
        self._seconds = seconds
        self._ready = False
        self._thread: threading.Thread | None = None
        self._asked_at = 0.0

    def read(self, asked: str, device: str, uuid: str | None = None) -> GpuReadings:
        """The readings of this moment. Never raises, and returns within `seconds`.

        Args:
            asked: the device that the worker was started with: auto, cpu, cuda or cuda:N.
            device: the one that its model is on; `asked` until that is known.
            uuid: of that GPU, as torch tells it.
        """
        if asked == "cpu":
            return GpuReadings([], "runs on the CPU")
        if device == "auto":
            return GpuReadings([], "unknown until the model is loaded")
        readings: list[GpuReadings] = []
        if self._thread is None or not self._thread.is_alive():
            self._asked_at = time.monotonic()
            work = self._on_the_cpu if device == "cpu" else lambda: self._on(device, uuid)
            self._thread = threading.Thread(target=lambda: readings.append(self._tried(work)), name="nvml", daemon=True)
            self._thread.start()
        self._thread.join(self._seconds)
        silent = time.monotonic() - self._asked_at
        return readings[0] if readings else GpuReadings([], f"the NVIDIA driver has not answered for {silent:.0f} s")

    def _tried(self, work: Callable[[], GpuReadings]) -> GpuReadings:
        try:
            return work()
        except ModuleNotFoundError as error:
            return GpuReadings([], f"the GPU cannot be read: {error.name} is missing (pip install 'onboard[gpu]')")
        except Exception as error:  # noqa: BLE001 - the thread's edge: a driver's trouble is told, never a heartbeat's
            return GpuReadings([], f"the NVIDIA driver cannot be queried: {error}")

    def _on_the_cpu(self) -> GpuReadings:
        """Chosen because CUDA found no GPU: worth a word where there is a card."""
        if not _cards():
            return GpuReadings([], "runs on the CPU")
        try:
            self._initialised()
        except self._nvml.NVMLError as error:
            return GpuReadings([], f"runs on the CPU: there is an NVIDIA card, but no driver for it ({error})")
        return GpuReadings([], "runs on the CPU: there is an NVIDIA card, but this torch or CUDA cannot use it")

    def _on(self, device: str, uuid: str | None) -> GpuReadings:
        nvml = self._initialised()
        handle, found_by = self._handle(int(device.partition(":")[2] or 0), uuid)
        troubles: list[str] = []

        def asked(what: str, ask: Callable[[], Any]) -> Any:
            try:
                return ask()
            except nvml.NVMLError as error:
                troubles.append(f"{what}: {error}")
                return None

        memory = asked("memory", lambda: _memory(nvml, handle))
        busy = asked("utilisation", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
        warm = asked("temperature", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        gpu = {
            "name": asked("name", lambda: nvml.nvmlDeviceGetName(handle)),
            "uuid": asked("uuid", lambda: nvml.nvmlDeviceGetUUID(handle)),
            "index": asked("index", lambda: nvml.nvmlDeviceGetIndex(handle)),
            "found_by": found_by,
            "memory_used_bytes": memory.used if memory else None,
            "memory_total_bytes": memory.total if memory else None,
            "utilization_ratio": busy,
            "temperature_celsius": warm,
        }
        return GpuReadings([gpu], "; ".join(troubles) or None)

    def _initialised(self) -> Any:
        if self._nvml is None:
            import pynvml  # type: ignore[import-untyped]

            self._nvml = pynvml
        if not self._ready:
            self._nvml.nvmlInit()
            self._ready = True
        return self._nvml

    def _handle(self, number: int, uuid: str | None) -> tuple[Any, str]:
        """NVML's handle of CUDA device `number`, and how it was found."""
        if uuid is not None:
            return self._by_uuid(uuid), "torch"
        visible = cuda_visible_devices()
        if visible is None:
            return self._nvml.nvmlDeviceGetHandleByIndex(number), "number"
        names = [name.strip() for name in visible.split(",")]
        if number >= len(names) or not names[number] or names[number].startswith("-"):
            raise LookupError(f"CUDA_VISIBLE_DEVICES={visible} has no device {number}")
        if names[number].isdigit():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(names[number])), "CUDA_VISIBLE_DEVICES"
        return self._by_uuid(names[number]), "CUDA_VISIBLE_DEVICES"

    def _by_uuid(self, uuid: str) -> Any:
        """Of a GPU or of a part of one (MIG); a GPU's may be cut short, as CUDA_VISIBLE_DEVICES allows."""
        nvml = self._nvml
        for name in (uuid, uuid.replace("GPU-", "MIG-", 1)):
            try:
                return nvml.nvmlDeviceGetHandleByUUID(name)
            except nvml.NVMLError:
                continue
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            if nvml.nvmlDeviceGetUUID(handle).startswith(uuid):
                return handle
        raise LookupError(f"there is no GPU {uuid}")


def _memory(nvml: Any, handle: Any) -> Any:
    """As nvidia-smi has it: what the driver keeps for itself is not counted as used. Old drivers count it."""
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError:
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def _cards() -> int:
    """NVIDIA cards on the machine's bus, with or without a driver."""
    return sum(_reads(card / "vendor", _NVIDIA) and _reads(card / "class", _DISPLAY) for card in PCI.glob("*"))


def _reads(file: Path, beginning: str) -> bool:
    try:
        return file.read_text().startswith(beginning)
    except OSError:  # no such file, or not for us
        return False
