"""The script for a worker on a GPU: a step that fails is shown and does not keep the others from running."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench import gpu_worker
from onboard.settings import Settings


class FakeSteps(gpu_worker.InstallationSteps):
    """Steps without processes; the named ones fail."""

    failing: frozenset[str] = frozenset()

    def start_worker(self) -> dict[str, Any]:
        return self._seen("start_worker")

    def learn(self) -> dict[str, Any]:
        return self._seen("learn")

    def kill(self) -> dict[str, Any]:
        return self._seen("kill")

    def fill_memory(self) -> dict[str, Any]:
        return self._seen("fill_memory")

    def serve(self) -> dict[str, Any]:
        return self._seen("serve")

    def _seen(self, name: str) -> dict[str, Any]:
        if name in self.failing:
            raise gpu_worker.StepError("attempt 3")
        return {"step": name}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[FakeSteps]:
    @contextmanager
    def settings(folder: Path, device: str) -> Iterator[Settings]:
        yield Settings(home=tmp_path / "home", device=device)

    monkeypatch.setattr(gpu_worker, "InstallationSteps", FakeSteps)
    monkeypatch.setattr(gpu_worker, "_settings", settings)
    monkeypatch.setattr(FakeSteps, "failing", frozenset())
    monkeypatch.setattr(gpu_worker, "made_by", lambda command, device: {"command": command, "machine": MACHINE})
    return FakeSteps


MACHINE = {"cores": 2, "processor": "a processor"}


def run(tmp_path: Path, device: str) -> tuple[int, dict[str, Any], str]:
    output, page = tmp_path / "gpu_worker.json", tmp_path / "gpu_worker.md"
    code = gpu_worker.main(["--device", device, "--output", str(output), "--table", str(page)])
    return code, json.loads(output.read_text()), page.read_text()


def test_a_rehearsal_leaves_out_the_step_that_needs_a_gpu(fake: type[FakeSteps], tmp_path: Path) -> None:
    code, document, page = run(tmp_path, "cpu")
    assert code == 0
    assert [step["passed"] for step in document["steps"]] == [True, True, True, None, True]
    assert "| reason: no GPU | 0.0 | left out |" in page


def test_a_gpu_meets_every_step(fake: type[FakeSteps], tmp_path: Path) -> None:
    code, document, _ = run(tmp_path, "cuda:0")
    assert code == 0
    assert [step["passed"] for step in document["steps"]] == [True] * 5


def test_a_step_that_fails_is_shown_and_the_next_ones_run(
    fake: type[FakeSteps], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake, "failing", frozenset({"kill"}))
    code, document, page = run(tmp_path, "cuda:0")
    assert code == 1
    assert [step["passed"] for step in document["steps"]] == [True, True, False, True, True]
    assert "| error: StepError: attempt 3 |" in page


def test_a_server_that_refuses_is_a_failed_step() -> None:
    def refused() -> dict[str, Any]:
        raise httpx.ConnectError("refused")

    step = gpu_worker._step("ask", refused)
    assert (step.passed, step.seen) == (False, {"error": "ConnectError: refused"})
