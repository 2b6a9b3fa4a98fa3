"""The plain loop that every training stage of a base shares: warm-up, clip, checkpoint, progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from onboard.errors import JobFailedError
from onboard.pretrain.checkpoint import Checkpoint
from onboard.pretrain.recipe import Schedule

Say = Callable[[str], None]
_REPORT_EVERY = 100


def run_stage(
    name: str,
    schedule: Schedule,
    modules: Mapping[str, nn.Module],
    groups: Sequence[tuple[Sequence[nn.Parameter], float]],
    loss_of: Callable[[int], torch.Tensor],
    work: Path,
    say: Say,
) -> None:
    """Train until `schedule.steps`, resuming from the stage's checkpoint, which stays behind as the stage's result.

    Args:
        name: the stage, also the checkpoint's file name.
        schedule: steps, learning rate, warm-up.
        modules: what the checkpoint holds.
        groups: parameters and the multiple of the learning rate they get.
        loss_of: the loss of a step (counted from 0); must depend on the step alone.
        work: folder of the checkpoint.
        say: where progress goes, a line at a time.

    Raises:
        JobFailedError: the loss is not finite.
    """
    optimiser = torch.optim.AdamW([{"params": list(parameters)} for parameters, _ in groups], lr=0.0, weight_decay=0.0)
    checkpoint = Checkpoint(work / f"{name}.safetensors", modules, optimiser)
    first = checkpoint.restore()
    started, total = time.monotonic(), 0.0
    for step in range(first, schedule.steps):
        for group, (_, multiple) in zip(optimiser.param_groups, groups, strict=True):
            group["lr"] = schedule.learning_rate * schedule.factor(step) * multiple
        loss = loss_of(step)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise JobFailedError(
                f"{name}: the loss is {value} at step {step}", "lower the stage's learning_rate in the recipe"
            )
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_([p for parameters, _ in groups for p in parameters], 1.0)
        optimiser.step()
        total += value
        checkpoint.save_if_due(step + 1)
        if (step + 1) % _REPORT_EVERY == 0:
            seconds = (time.monotonic() - started) / (step + 1 - first)
            left = seconds * (schedule.steps - step - 1) / 60
            loss_text = f"loss {total / min(_REPORT_EVERY, step + 1 - first):.4f}"
            say(f"{name} {step + 1}/{schedule.steps}  {loss_text}  {seconds:.3f} s/step  {left:.0f} min left")
            total = 0.0
    if first < schedule.steps:
        checkpoint.save(schedule.steps)
