"""What a worker tells about its GPU, with an NVML that does as it is told."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from workers import gpu
from workers.gpu import GpuReader, GpuReadings

UUIDS = ["GPU-aaaa-0", "GPU-bbbb-1", "GPU-bbcc-2"]


class FakeNvml:
    """Three GPUs. `broken` names functions and the error that they give."""

    NVMLError = pynvml.NVMLError
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    nvmlMemory_v2 = pynvml.nvmlMemory_v2  # noqa: N815 - the name of the library

    def __init__(self, **broken: int) -> None:
        self.broken = broken
        self.inits = 0
        self.answers = threading.Event()
        self.answers.set()

    def _ask(self, function: str) -> None:
        assert self.answers.wait(30)
        if function in self.broken:
            raise pynvml.NVMLError(self.broken[function])

    def nvmlInit(self) -> None:
        self._ask("init")
        self.inits += 1

    def nvmlDeviceGetCount(self) -> int:
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index >= len(UUIDS):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        if uuid not in UUIDS:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return UUIDS.index(uuid)

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"NVIDIA H{handle}00"

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return UUIDS[handle]

    def nvmlDeviceGetIndex(self, handle: int) -> int:
        self._ask("index")
        return handle

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int | None = None) -> Any:
        self._ask("memory_v2" if version else "memory")
        return SimpleNamespace(used=(1 if version else 2) * 2**30, total=80 * 2**30)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        self._ask("utilisation")
        return SimpleNamespace(gpu=37, memory=1)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        self._ask("temperature")
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return 54


@pytest.fixture(autouse=True)
def _no_cuda_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's cards: none, until a test puts one there."""
    monkeypatch.setattr(gpu, "PCI", tmp_path)
    return tmp_path


def put_card(bus: Path, vendor: str = "0x10de", kind: str = "0x030200") -> None:
    card = bus / f"0000:{len(list(bus.iterdir())):02}:00.0"
    card.mkdir()
    (card / "vendor").write_text(vendor + "\n")
    (card / "class").write_text(kind + "\n")


def only(readings: GpuReadings) -> dict[str, Any]:
    (reading,) = readings.gpus
    return reading


def test_a_gpu_is_told_in_bytes_ratios_and_degrees() -> None:
    readings = GpuReader(FakeNvml()).read("cuda:1", "cuda:1")
    assert readings.reason is None
    assert only(readings) == {
        "name": "NVIDIA H100", "uuid": "GPU-bbbb-1", "index": 1, "found_by": "number",
        "memory_used_bytes": 2**30, "memory_total_bytes": 80 * 2**30, "utilization_ratio": 0.37,
        "temperature_celsius": 54,
    }  # fmt: skip
    assert json.loads(json.dumps(readings.gpus)) == readings.gpus


def test_the_uuid_that_torch_tells_wins_over_every_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    reading = only(GpuReader(FakeNvml()).read("auto", "cuda:0", "GPU-bbcc-2"))
    assert (reading["index"], reading["found_by"]) == (2, "torch")


@pytest.mark.parametrize(
    ("visible", "device", "index"),
    [
        ("2,0", "cuda:0", 2),
        ("2,0", "cuda:1", 0),
        (" 1 , 2", "cuda", 1),
        ("GPU-bbcc-2,GPU-aaaa-0", "cuda:0", 2),
        ("2,GPU-aaaa", "cuda:1", 0),  # cut short
    ],
)
def test_numbers_of_cuda_are_read_through_its_variable(
    visible: str, device: str, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    reading = only(GpuReader(FakeNvml()).read(device, device))
    assert (reading["index"], reading["found_by"]) == (index, "CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("visible", "device", "words"),
    [
        ("", "cuda:0", "has no device 0"),
        ("-1", "cuda:0", "has no device 0"),
        ("1", "cuda:1", "has no device 1"),
        ("GPU-none,1", "cuda:0", "there is no GPU GPU-none"),
    ],
)
def test_a_device_that_the_variable_hides_is_no_gpu_of_this_worker(
    visible: str, device: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    readings = GpuReader(FakeNvml()).read(device, device)
    assert readings.gpus == []
    assert words in str(readings.reason)


def test_a_part_of_a_gpu_is_found_by_the_same_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.UUIDS", ["GPU-other", "MIG-abc"])
    assert only(GpuReader(FakeNvml()).read("cuda", "cuda:0", "GPU-abc"))["uuid"] == "MIG-abc"


def test_what_the_driver_does_not_know_is_missing_with_its_reason() -> None:
    broken = {"utilisation": pynvml.NVML_ERROR_NOT_SUPPORTED, "temperature": pynvml.NVML_ERROR_NOT_SUPPORTED}
    readings = GpuReader(FakeNvml(**broken)).read("cuda", "cuda:0")
    reading = only(readings)
    assert (reading["utilization_ratio"], reading["temperature_celsius"]) == (None, None)
    assert reading["memory_used_bytes"] == 2**30
    assert readings.reason == "utilisation: Not Supported; temperature: Not Supported"


def test_drivers_without_the_newer_memory_call_are_asked_the_older_way() -> None:
    reading = only(GpuReader(FakeNvml(memory_v2=pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)).read("cuda", "cuda:0"))
    assert reading["memory_used_bytes"] == 2 * 2**30


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"),
    ],
)
def test_a_driver_that_is_not_there_is_a_reason_and_no_error(error: int, words: str) -> None:
    readings = GpuReader(FakeNvml(init=error)).read("cuda:0", "cuda:0")
    assert readings == GpuReadings([], f"the NVIDIA driver cannot be queried: {words}")


def test_nvml_is_initialised_once_and_again_only_after_it_failed() -> None:
    nvml = FakeNvml(init=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    reader = GpuReader(nvml)
    reader.read("cuda", "cuda:0")
    nvml.broken = {}
    for _ in range(3):
        assert reader.read("cuda", "cuda:0").reason is None
    assert nvml.inits == 1


def test_a_driver_that_hangs_holds_nothing_up_and_is_asked_by_one_thread_only() -> None:
    nvml = FakeNvml()
    nvml.answers.clear()
    reader = GpuReader(nvml, seconds=0.05)
    before = threading.active_count()
    for _ in range(3):
        readings = reader.read("cuda", "cuda:0")
        assert readings.gpus == []
        assert "has not answered for" in str(readings.reason)
    assert threading.active_count() == before + 1
    nvml.answers.set()
    assert reader._thread is not None
    reader._thread.join(30)
    assert not reader._thread.is_alive()


def test_anything_that_goes_wrong_is_a_reason() -> None:
    nvml = FakeNvml()
    nvml.nvmlDeviceGetIndex = None
    assert "NoneType" in str(GpuReader(nvml).read("cuda", "cuda:0").reason)


def test_the_cpu_is_said_in_words(bus: Path) -> None:
    nvml = FakeNvml()
    put_card(bus)
    assert GpuReader(nvml).read("cpu", "cpu") == GpuReadings([], "runs on the CPU")
    assert nvml.inits == 0


def test_before_the_model_is_loaded_nobody_knows_where_auto_leads() -> None:
    assert GpuReader(FakeNvml()).read("auto", "auto") == GpuReadings([], "unknown until the model is loaded")


def test_auto_on_a_machine_without_a_card_is_the_cpu(bus: Path) -> None:
    put_card(bus, vendor="0x8086")
    put_card(bus, kind="0x040300")  # the sound of a card
    assert GpuReader(FakeNvml()).read("auto", "cpu") == GpuReadings([], "runs on the CPU")


def test_a_card_without_a_driver_is_worth_a_word(bus: Path) -> None:
    put_card(bus)
    reason = GpuReader(FakeNvml(init=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)).read("auto", "cpu").reason
    assert reason == "runs on the CPU: there is an NVIDIA card, but no driver for it (NVML Shared Library Not Found)"


def test_a_card_that_torch_cannot_use_is_worth_a_word(bus: Path) -> None:
    put_card(bus)
    reason = GpuReader(FakeNvml()).read("auto", "cpu").reason
    assert reason == "runs on the CPU: there is an NVIDIA card, but this torch or CUDA cannot use it"


def test_the_real_library_has_what_it_is_asked_for() -> None:
    asked = [name for name in dir(FakeNvml) if name.startswith(("nvml", "NVML"))]
    assert [name for name in asked if not hasattr(pynvml, name)] == []
    readings = GpuReader().read("cuda:0", "cuda:0")  # with or without a driver here
    assert readings.gpus or readings.reason


def test_without_the_extra_the_command_that_installs_it_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # as if it were not installed
    readings = GpuReader().read("cuda:0", "cuda:0")
    assert (readings.gpus, "pip install 'onboard[gpu]'" in str(readings.reason)) == ([], True)
