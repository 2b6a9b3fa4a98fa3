"""Rows of the bench of held-out tasks without a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.harness.rows import Row
from bench.heldout.plan import ArmRun


def made(run: ArmRun, accuracy: float, **more: Any) -> Row:
    """A row of a finished run."""
    probe = {"chosen": "sst2@v1", "start": "sst2@v1", "start_family": "sentiment", "best": ["sst2@v1"],
             "in_base": True, "top1": True, "top3": True}  # fmt: skip
    job = {"share": 0.7, "tuning_tried": True, "tuning_kept": False, "weak": False}
    return {
        **asdict(run), "family": "sentiment", "rarest": 0.5, "accuracy": accuracy, "macro_f1": accuracy - 2.0,
        "log_loss": 1.0, "calibration": 0.05, "unanswered": [], "seconds": 10.0, **probe, **job, **more,
    }  # fmt: skip


def made_results(by_arm: dict[str, Sequence[float]], rows: int = 32, **more: Any) -> dict[ArmRun, Row]:
    """Rows of two draws of a task for each accuracy of an arm: `task-0`, `task-1` …"""
    return {
        run: made(run, accuracy, **more)
        for arm, accuracies in by_arm.items()
        for place, accuracy in enumerate(accuracies)
        for run in (ArmRun(f"task-{place}", rows, draw, arm) for draw in (0, 1))
    }
