"""A job on a GPU whose memory is too small (played by a hook): it goes on with fewer rows at once, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from support.real_jobs import Desk, opinions

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.job import JobState
from onboard.model import engine as engines
from onboard.pipeline import run as pipeline
from onboard.registry.services import Services
from onboard.report import render
from onboard.report.terminal import render_text
from onboard.storage.embedding import unpack_embedding
from onboard.testing import RecordedProgress
from workers.shell import work


@contextmanager
def memory_for(rows: int, base: Base) -> Iterator[None]:
    """More rows than that do not fit through the encoder."""

    def refuse(module: Any, inputs: Any, output: torch.Tensor) -> None:
        if len(output) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    block = load_engine(base, "cpu").backbone.encoder.block[-1].layer[-1].layer_norm
    handle = block.register_forward_hook(refuse)
    try:
        yield
    finally:
        handle.remove()


def test_a_job_that_does_not_fit_goes_on_with_fewer_rows_and_the_same_result(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "has_bfloat16", lambda: False)  # a CPU's matter; a GPU rounds nothing
    plain = desk.learn(opinions(80), "plain", init="sst2", test=opinions(40, start=80))
    assert plain["halved"] == []
    progress = RecordedProgress()
    desk.submit(opinions(80), "small", init="sst2", test=opinions(40, start=80))
    with memory_for(4, tiny_base):
        result = desk.run(desk.claim(), progress).result
    assert result is not None
    assert [halving["stage"] for halving in result["halved"]] == ["probe"] * 4 + ["train"] * 2
    assert result["halved"][0] == {"stage": "probe", "rows": 60, "rows_at_once": 30}
    assert result["halved"][-1]["rows_at_once"] <= 4
    notes = [(message, numbers) for what, message, numbers in progress.calls if what == "note"]
    assert ("the GPU's memory is too small for 60 rows at once: continuing with 30", {"rows_at_once": 30}) in notes
    first, second = (
        unpack_embedding(tiny_services.artifacts.get(desk.version(task).artifact)) for task in ("plain", "small")
    )
    np.testing.assert_allclose(second, first, atol=1e-4)
    assert result["metrics"]["test"]["accuracy"]["value"] == plain["metrics"]["test"]["accuracy"]["value"]
    assert "too small for 60 rows at once in probe" in render(result)
    assert "GPU memory" in str(render_text(result).page.training)


def test_a_job_of_which_not_one_row_fits_fails_with_a_remedy_and_is_not_tried_again(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.submit(opinions(24))
    with memory_for(0, tiny_base):
        done = work(tiny_services, "worker", ["default"], pipeline.run)
    assert done is not None
    assert (done.state, done.attempt) == (JobState.FAILED, 1)
    assert done.error is not None
    assert done.error["code"] == "out_of_memory"
    assert "one row" in done.error["message"]
    assert "nvidia-smi" in done.error["remedy"]


def test_memory_that_runs_out_elsewhere_is_told_as_well(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any, **named: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    desk.submit(opinions(24))
    monkeypatch.setattr(pipeline, "judge", full)
    done = work(tiny_services, "worker", ["default"], pipeline.run)
    assert done is not None
    assert done.error is not None
    assert (done.state, done.error["code"]) == (JobState.FAILED, "out_of_memory")
