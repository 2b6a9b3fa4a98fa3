"""What a worker tells about its machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from onboard import __version__
from onboard.domain.worker import WorkerState
from onboard.operations.processes import is_alive
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from workers.machine import device_in_use, facts
from workers.plan import WorkerPlan


def test_facts_are_those_of_the_worker_on_its_device() -> None:
    seen = facts([], "cpu", "cpu")
    assert (seen["onboard"], seen["gpus"], seen["gpu_reason"]) == (__version__, [], "runs on the CPU")
    assert seen["cpus"] >= 1


def test_resident_memory_is_that_of_the_living() -> None:
    assert facts([os.getpid(), 2**22 + 1], "cpu", "cpu")["resident_bytes"] > 10**7
    assert facts([2**22 + 1], "cpu", "cpu")["resident_bytes"] == 0


def test_the_device_in_use_is_what_torch_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from onboard.bases import load

    assert device_in_use("cpu") == ("cpu", None)
    monkeypatch.setattr(load, "resolve_device", lambda asked: torch.device("cuda", 3))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda number: SimpleNamespace(uuid=f"0a1b-{number}"), raising=True
    )
    assert device_in_use("cuda:3") == ("cuda:3", "GPU-0a1b-3")


def test_without_torch_nobody_knows_the_device_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: dict[str, ModuleType] = {name: module for name, module in sys.modules.items() if name != "torch"}
    monkeypatch.setattr(sys, "modules", modules)
    assert device_in_use("auto") is None


@pytest.mark.parametrize(("in_use", "device"), [(("cuda:1", "GPU-1"), ("cuda:1", "GPU-1")), (None, ("auto", None))])
def test_a_child_tells_its_parent_what_the_model_is_on(
    in_use: tuple[str, str] | None, device: tuple[str, str | None], services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers import tasks

    plan = WorkerPlan(services.settings, name="w1")
    with services.database.write() as session:
        WorkerRepository(session).enter("w1", WorkerState.RUNNING, queues=["default"], host="h", device=plan.device)
    monkeypatch.setattr(tasks, "device_in_use", {plan.device: in_use}.get)
    tasks._say_ready(SimpleNamespace(plan=plan, services=services))
    with services.database.read() as session:
        assert WorkerRepository(session).device("w1") == device


def test_a_process_lives_until_it_has_ended_even_unreaped() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_alive(process.pid, time.time() + 1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table
        assert not is_alive(process.pid, time.time() + 1)
    assert not is_alive(process.pid, time.time() + 1)


def test_a_later_process_of_the_same_number_is_not_it() -> None:
    assert not is_alive(os.getpid(), born_before=1.0)
