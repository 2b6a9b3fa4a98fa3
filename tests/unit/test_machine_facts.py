"""What a worker tells about its machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workers.machine import facts, is_alive


def fake_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_gpus_are_told_in_bytes_and_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, "echo 'NVIDIA H100, 1024, 81559, 37'; echo 'GRID, 0, 16384, [N/A]'")
    assert facts([])["gpus"] == [
        {
            "name": "NVIDIA H100", "memory_used_bytes": 2**30, "memory_total_bytes": 81559 * 2**20,
            "utilization_ratio": 0.37,
        },
        {"name": "GRID", "memory_used_bytes": 0, "memory_total_bytes": 2**34, "utilization_ratio": None},
    ]  # fmt: skip


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found'; exit 6"])
def test_a_driver_that_fails_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, script)
    assert facts([])["gpus"] == []


def test_resident_memory_is_that_of_the_living() -> None:
    seen = facts([os.getpid(), 2**22 + 1])
    assert seen["resident_bytes"] > 10**7
    assert seen["cpus"] >= 1


def test_a_process_lives_until_it_has_ended_even_unreaped() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_alive(process.pid, time.time() + 1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table
        assert not is_alive(process.pid, time.time() + 1)
    assert not is_alive(process.pid, time.time() + 1)


def test_a_later_process_of_the_same_number_is_not_it() -> None:
    assert not is_alive(os.getpid(), born_before=1.0)
