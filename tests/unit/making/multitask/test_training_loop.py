"""The training loop: resumed to the same bits, stopped in order, ended with the best weights, safe from full disks."""

from __future__ import annotations

import errno
import itertools
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from support.refusals import refused
from torch import nn

from onboard.domain.private import open_new
from onboard.making.multitask import checkpoint
from onboard.making.multitask.checkpoint import first_difference, require_checkpoint
from onboard.making.multitask.loop import Running, Scores, StageValidation, StepLoss, TrainingStage, duration, run_stage
from onboard.making.multitask.recipe import Schedule
from onboard.making.multitask.signals import Signals, StoppedError

SCHEDULE = Schedule(steps=8, batch=4, learning_rate=0.1, warmup_steps=2)
SETTINGS = {"seed": 0, "hypernetwork": {"steps": 8, "learning_rate": 0.1}}
Weights = dict[str, torch.Tensor]


class _PowerCutError(Exception):
    """Ends a stage in the middle."""


def make_stage(**changes: Any) -> tuple[TrainingStage, nn.Linear, nn.ParameterList, list[int]]:
    """A stage with a linear layer and four embeddings of which each step trains one; and the steps that it ran."""
    torch.manual_seed(0)
    linear, table = nn.Linear(3, 2), nn.ParameterList(nn.Parameter(torch.randn(1, 3)) for _ in range(4))
    steps: list[int] = []

    def loss_of(step: int) -> StepLoss:
        steps.append(step)
        rows = torch.randn(4, 3, generator=torch.Generator().manual_seed(step)) + table[step % 4]
        return StepLoss((linear(rows) - 1).square().mean(), f"task-{step % 4}", 4, 12)

    groups = [(list(linear.parameters()), 1.0), (list(table), 2.0)]
    stage = TrainingStage("stage", SCHEDULE, {"linear": linear, "table": table}, groups, loss_of, SETTINGS)
    return replace(stage, **changes), linear, table, steps


def with_loss(stage: TrainingStage, change: Callable[[int, StepLoss], StepLoss]) -> TrainingStage:
    loss_of = stage.loss_of
    return replace(stage, loss_of=lambda step: change(step, loss_of(step)))


def train(work: Path, dies_at: int | None = None) -> tuple[Weights, list[int]]:
    """The stage's weights at its end, and the steps that it ran."""
    stage, linear, table, steps = make_stage()

    def cut(step: int, loss: StepLoss) -> StepLoss:
        if step == dies_at:
            raise _PowerCutError
        return loss

    run_stage(with_loss(stage, cut), Running(work, lambda line: None))
    return state(linear, table), steps


def state(linear: nn.Linear, table: nn.ParameterList) -> Weights:
    joined = {**linear.state_dict(prefix="linear."), **table.state_dict(prefix="table.")}
    return {name: value.clone() for name, value in joined.items()}


def test_a_resumed_stage_gives_the_same_bits_as_an_uninterrupted_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = train(tmp_path / "whole")
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", -1.0)  # after every step
    for dies_at in (3, 6):
        with pytest.raises(_PowerCutError):
            train(tmp_path / "cut", dies_at=dies_at)
    resumed, steps = train(tmp_path / "cut")
    assert steps == [6, 7]
    assert resumed.keys() == whole.keys()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
    _, linear, table, _ = make_stage()
    assert not any(torch.equal(whole[name], value) for name, value in state(linear, table).items())


def test_a_finished_stage_is_not_run_again(tmp_path: Path) -> None:
    whole, _ = train(tmp_path)
    again, steps = train(tmp_path)
    assert steps == []
    assert all(torch.equal(again[name], whole[name]) for name in whole)


def test_an_embedding_that_is_not_in_the_batch_does_not_move_whatever_its_momentum(tmp_path: Path) -> None:
    stage, _, table, _ = make_stage()
    seen: list[list[torch.Tensor]] = []

    def look(step: int, loss: StepLoss) -> StepLoss:
        seen.append([parameter.detach().clone() for parameter in table])
        return loss

    run_stage(with_loss(stage, look), Running(tmp_path, lambda line: None))
    seen.append([parameter.detach().clone() for parameter in table])
    for step, (before, after) in enumerate(itertools.pairwise(seen)):
        moved = [not torch.equal(one, other) for one, other in zip(before, after, strict=True)]
        assert moved == [step % 4 == index for index in range(4)]


def test_a_signal_saves_and_the_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole, _ = train(tmp_path / "whole")
    stage, _, _, _ = make_stage()
    before = signal.getsignal(signal.SIGTERM)

    def struck(step: int, loss: StepLoss) -> StepLoss:
        if step == 4:
            signal.raise_signal(signal.SIGTERM)
        return loss

    with Signals().handled() as signals, pytest.raises(StoppedError, match="saved at step") as caught:
        run_stage(with_loss(stage, struck), Running(tmp_path / "cut", lambda line: None, signals=signals))
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    resumed, steps = train(tmp_path / "cut")
    assert steps == [4, 5, 6, 7]
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_outside_the_steps_a_signal_ends_the_run_at_once() -> None:
    with Signals().handled(), pytest.raises(StoppedError) as caught:
        signal.raise_signal(signal.SIGINT)
    assert caught.value.exit_code == 130


def scored(values: list[float]) -> tuple[StageValidation, list[int]]:
    asked: list[int] = []

    def score(before_batch: Callable[[], None]) -> Scores:
        before_batch()
        asked.append(len(asked))
        value = values[len(asked) - 1]
        return Scores({"a": value, "b": 0.5}, {"a": "accuracy", "b": "mcc"})

    return StageValidation(2, score), asked


def test_the_stage_ends_with_the_weights_that_were_best_on_validation(tmp_path: Path) -> None:
    lines: list[str] = []
    at: dict[int, Weights] = {}
    validation, asked = scored([0.1, 0.9, 0.3, 0.9])  # after steps 2, 4, 6 and 8; of equals the first is kept
    stage, linear, table, _ = make_stage(validation=validation)

    def look(step: int, loss: StepLoss) -> StepLoss:
        at[step] = state(linear, table)
        return loss

    run_stage(with_loss(stage, look), Running(tmp_path, lines.append))
    assert len(asked) == 4
    assert all(torch.equal(value, at[4][name]) for name, value in state(linear, table).items())
    assert "best validation 0.7000 at step 4" in lines[-1]
    assert any("a accuracy 0.900, b mcc 0.500" in line for line in lines)
    again, _ = scored([0.2])  # a finished stage keeps the best of the run
    stage, linear, table, steps = make_stage(validation=again)
    run_stage(stage, Running(tmp_path, lines.append))
    assert steps == []
    assert all(torch.equal(value, at[4][name]) for name, value in state(linear, table).items())


def test_a_signal_during_a_validation_breaks_it_off_and_it_is_done_again(tmp_path: Path) -> None:
    stage, _, _, steps = make_stage()

    def struck(before_batch: Callable[[], None]) -> Scores:
        signal.raise_signal(signal.SIGTERM)
        before_batch()
        raise AssertionError

    with Signals().handled() as signals, pytest.raises(StoppedError, match="step 2"):
        run_stage(replace(stage, validation=StageValidation(2, struck)), Running(tmp_path, print, signals=signals))
    assert steps == [0, 1]
    validation, asked = scored([0.1, 0.2, 0.3, 0.4])
    run_stage(replace(stage, validation=validation), Running(tmp_path, lambda line: None))
    assert len(asked) == 4
    assert steps == list(range(8))


def test_the_best_weights_of_an_earlier_run_in_the_same_folder_do_not_win(tmp_path: Path) -> None:
    stage, *_ = make_stage(validation=scored([0.9] * 4)[0])
    run_stage(stage, Running(tmp_path, lambda line: None))
    (tmp_path / "stage.safetensors").unlink()
    lines: list[str] = []
    stage, *_ = make_stage(validation=scored([0.1] * 4)[0])
    run_stage(stage, Running(tmp_path, lines.append))
    assert "best validation 0.3000 at step 2" in lines[-1]


def test_a_full_disk_leaves_the_last_good_checkpoint_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "EVERY_SECONDS", -1.0)
    whole, _ = train(tmp_path / "whole")
    path = tmp_path / "cut" / "stage.safetensors"
    with pytest.raises(_PowerCutError):
        train(path.parent, dies_at=3)
    good = path.read_bytes()

    class Full:
        """A file that takes half of what it is given."""

        def __init__(self, stream: IO[bytes]) -> None:
            self.stream = stream

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *raised: object) -> None:
            self.stream.close()

        def write(self, content: bytes) -> None:
            self.stream.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "open_new", lambda path: Full(open_new(path)))
        with refused("checkpoint-not-writable") as caught:
            train(path.parent)
    assert "repeat the command" in caught.value.remedy
    assert path.read_bytes() == good
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # no half file is left
    resumed, steps = train(path.parent)
    assert steps == [3, 4, 5, 6, 7]
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


def test_a_checkpoint_of_another_recipe_is_refused_with_the_first_field_that_differs(tmp_path: Path) -> None:
    train(tmp_path)
    other = {"seed": 0, "hypernetwork": {"steps": 8, "learning_rate": 0.2}}
    stage, *_ = make_stage(settings=other)
    with refused("checkpoint-of-other-recipe") as caught:
        run_stage(stage, Running(tmp_path, lambda line: None))
    assert caught.value.data["field"] == "hypernetwork.learning_rate"
    assert "was 0.1 and is 0.2 now" in caught.value.message


def test_the_first_difference_of_two_documents_is_found_in_missing_fields_too() -> None:
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 1}}) is None
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 1, "c": None}}) == "a.c"
    assert first_difference({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}) == "a.c"
    assert first_difference({"z": 1, "a": 1}, {"z": 2, "a": 2}) == "z"


def test_a_loss_that_is_no_number_stops_the_stage_and_names_batch_and_task(tmp_path: Path) -> None:
    stage, linear, _, _ = make_stage()
    broken = with_loss(stage, lambda step, loss: replace(loss, value=loss.value * float("nan")) if step == 2 else loss)
    with refused("base-training-diverged", step=2, task="task-2"):
        run_stage(broken, Running(tmp_path, lambda line: None))
    assert torch.isfinite(linear.weight).all()
    assert not (tmp_path / "stage.safetensors").exists()


def test_progress_tells_loss_speed_and_time_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.making.multitask.loop._REPORT_SECONDS", -1.0)
    stage, *_ = make_stage()
    lines: list[str] = []
    run_stage(stage, Running(tmp_path, lines.append))
    assert len(lines) == 8
    assert lines[2].startswith("stage 3/8  loss ")
    assert all(part in lines[2] for part in ("rows/s", "tokens/s", " left"))
    assert [duration(seconds) for seconds in (45, 720, 11520)] == ["45 s", "12 min", "3 h 12 min"]


def test_to_resume_a_checkpoint_must_be_there(tmp_path: Path) -> None:
    with refused("training-checkpoint-missing"):
        require_checkpoint(tmp_path)
    train(tmp_path)
    require_checkpoint(tmp_path)


def test_the_learning_rate_warms_up_and_decays_to_zero_or_stays() -> None:
    schedule = Schedule(steps=10, batch=1, learning_rate=1.0, warmup_steps=4)
    factors = [schedule.factor(step) for step in range(11)]
    assert factors[:4] == [0.25, 0.5, 0.75, 1.0]
    assert factors[4:] == pytest.approx([1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0.0])
    assert Schedule(steps=2, batch=1, learning_rate=1.0, warmup_steps=0).factor(0) == 1.0
    assert 0 < Schedule(steps=2, batch=1, learning_rate=1.0, warmup_steps=9).factor(1) < 1.0
    constant = Schedule(steps=10, batch=1, learning_rate=1.0, warmup_steps=4, schedule="constant")
    assert [constant.factor(step) for step in (0, 3, 4, 9)] == [0.25, 1.0, 1.0, 1.0]
