"""A training stage that was interrupted and goes on gives the same bits as one that was not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from onboard.errors import JobFailedError
from onboard.pretrain import checkpoint
from onboard.pretrain.checkpoint import Checkpoint
from onboard.pretrain.recipe import Schedule
from onboard.pretrain.stage import run_stage

SCHEDULE = Schedule(steps=8, batch=4, learning_rate=0.1, warmup_steps=2)


class _PowerCutError(Exception):
    """Ends a stage in the middle."""


def parts() -> tuple[nn.Linear, nn.Embedding]:
    torch.manual_seed(0)
    return nn.Linear(3, 2), nn.Embedding(4, 3)


def train(work: Path, dies_at: int | None = None) -> tuple[dict[str, torch.Tensor], list[int]]:
    """The stage's weights at its end, and the steps that it ran."""
    linear, table = parts()
    steps: list[int] = []

    def loss_of(step: int) -> torch.Tensor:
        if step == dies_at:
            raise _PowerCutError
        steps.append(step)
        rows = torch.randn(4, 3, generator=torch.Generator().manual_seed(step)) + table(torch.tensor([step % 4]))
        answer: torch.Tensor = (linear(rows) - 1).square().mean()
        return answer

    groups = [(list(linear.parameters()), 1.0), (list(table.parameters()), 2.0)]
    run_stage("stage", SCHEDULE, {"linear": linear, "table": table}, groups, loss_of, work, lambda line: None)
    state = {**linear.state_dict(prefix="linear."), **table.state_dict(prefix="table.")}
    return {name: value.clone() for name, value in state.items()}, steps


def test_a_resumed_stage_gives_the_same_bits_as_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = train(tmp_path / "whole")
    monkeypatch.setattr(checkpoint, "_EVERY_SECONDS", -1.0)  # after every step
    with pytest.raises(_PowerCutError):
        train(tmp_path / "cut", dies_at=3)
    with pytest.raises(_PowerCutError):
        train(tmp_path / "cut", dies_at=6)
    resumed, steps = train(tmp_path / "cut")
    assert steps == [6, 7]
    assert resumed.keys() == whole.keys()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
    started = {**parts()[0].state_dict(prefix="linear."), **parts()[1].state_dict(prefix="table.")}
    assert not any(torch.equal(whole[name], started[name]) for name in whole)


def test_a_finished_stage_is_not_run_again(tmp_path: Path) -> None:
    whole, _ = train(tmp_path)
    again, steps = train(tmp_path)
    assert steps == []
    assert all(torch.equal(again[name], whole[name]) for name in whole)


def test_the_last_good_checkpoint_survives_a_write_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    linear, _ = parts()
    optimiser = torch.optim.AdamW(linear.parameters())
    saved = Checkpoint(tmp_path / "stage.safetensors", {"linear": linear}, optimiser)
    saved.save(5)
    good = (tmp_path / "stage.safetensors").read_bytes()

    def full(*arguments: object, **named: object) -> None:
        (tmp_path / "stage.part").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(OSError, match="No space"):
        saved.save(6)
    assert (tmp_path / "stage.safetensors").read_bytes() == good
    assert Checkpoint(tmp_path / "stage.safetensors", {"linear": linear}, optimiser).restore() == 5


def test_a_loss_that_is_no_number_stops_the_stage_and_names_the_step(tmp_path: Path) -> None:
    linear, _ = parts()
    groups = [(list(linear.parameters()), 1.0)]

    def loss_of(step: int) -> torch.Tensor:
        loss: torch.Tensor = linear(torch.ones(1, 3)).sum()
        return loss * float("nan") if step == 2 else loss

    with pytest.raises(JobFailedError, match="step 2"):
        run_stage("stage", SCHEDULE, {"linear": linear}, groups, loss_of, tmp_path, lambda line: None)
    assert torch.isfinite(linear.weight).all()
