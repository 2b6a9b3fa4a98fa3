"""The bench of tasks with several labels: LoRA's independent scores, the plan, and the page."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch

from bench.harness.page import Facts
from bench.harness.rows import Row
from bench.heldout.figures import Results
from bench.heldout.plan import AS_THEY_COME, ArmRun
from bench.multilabel.lora import LabelledTexts, balanced, lora_scores
from bench.multilabel.page import markdown, verdicts
from bench.multilabel.plan import ARMS, LORA, LORA_ROWS, OURS, plan
from bench.transfer.recipes import Recipe
from onboard.bases import Base
from onboard.bases.load import fresh_engine

TEXTS = {
    "awful": ["negative"], "great": ["positive"], "great awful": ["negative", "positive"], "the film": [],
}  # fmt: skip
LABELS = ("negative", "positive")


def row(run: ArmRun, f1: float) -> Row:
    figures = {"micro_f1": f1, "macro_f1": f1 - 10, "lrap": 80.0, "exact_match": 20.0}
    return {**asdict(run), "family": "", "rarest": 1.0, "seconds": 1.0, **figures}


def runs_of(arm: str, f1: float, draws: tuple[int, ...] = (0, 1)) -> dict[ArmRun, Row]:
    runs = (ArmRun(task, 32, draw, arm, AS_THEY_COME) for task in ("first", "second") for draw in draws)
    return {run: row(run, f1) for run in runs}


def test_lora_learns_labels_independently_of_each_other(tiny_base: Base) -> None:
    engine = fresh_engine(tiny_base)
    texts = [text for text in TEXTS for _ in range(6)]
    truth = np.array([[label in TEXTS[text] for label in LABELS] for text in texts], dtype=np.float64)
    ids = engine.encoder.encode([(text, None) for text in texts])
    asked = engine.encoder.encode([(text, None) for text in TEXTS])
    scores = lora_scores(engine, LABELS, LabelledTexts(ids, truth), asked, Recipe(0.03, 120, 8), 0)
    assert scores.shape == (4, 2)
    expected = [[label in TEXTS[text] for label in LABELS] for text in TEXTS]
    assert (scores >= 0.5).tolist() == expected, "both labels of a text, and none, can be answered"


def test_rows_with_a_label_weigh_as_much_as_those_without() -> None:
    weights = balanced(torch.tensor([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    assert weights[:, 0].tolist() == pytest.approx([2.0, 2 / 3, 2 / 3, 2 / 3])
    assert weights[:, 1].tolist() == pytest.approx([0.5] * 4)


def test_lora_is_planned_for_few_rows_alone() -> None:
    runs = plan(["first"], tuple(ARMS))
    assert {run.rows for run in runs if run.arm == LORA} == set(LORA_ROWS)
    assert {run.rows for run in runs if run.arm == OURS} == {32, 100, 500}


def test_a_comparison_is_of_the_draws_that_both_have_and_says_how_many() -> None:
    ours = runs_of(OURS, 60.0)
    ours[ArmRun("first", 32, 1, OURS, AS_THEY_COME)]["micro_f1"] = 0.0  # without its counterpart
    results = Results({**ours, **runs_of(LORA, 50.0, draws=(0,))})
    line, other = (line for line in verdicts(results) if ARMS[LORA] in line and "n = 32" in line)
    assert "+10.0 (+10.0 to +10.0), 2 tasks, 2 draws" in line
    assert "| met |" in line
    assert "macro-F1" in other
    (unmeasured, _) = (line for line in verdicts(results) if ARMS[LORA] in line and "n = 100" in line)
    assert "not measured yet" in unmeasured


def test_the_page_says_how_many_runs_there_are_of_how_many() -> None:
    rows = {**runs_of(OURS, 60.0), **runs_of(LORA, 50.0, draws=(0,))}
    missing = [ArmRun(task, 32, 1, LORA, AS_THEY_COME) for task in ("first", "second")]
    page = markdown(Results(rows), Facts("python -m bench.multilabel", "mini", 2, 300, missing))
    assert f"2 runs of the plan were not made ({ARMS[LORA]}, n = 32: 2 of 4 runs made)" in page
    assert f"| 32 | {ARMS[LORA]} | 2 | 2 | 50.0 |" in page
