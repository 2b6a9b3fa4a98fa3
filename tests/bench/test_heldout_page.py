"""What the held-out bench's runs say: means and differences over tasks, verdicts, and a page of whatever is there."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from support.heldout_rows import made, made_results

from bench.harness.rows import Row
from bench.heldout.figures import Results
from bench.heldout.page import HeldOutFacts, encoder_lines, markdown
from bench.heldout.plan import ARMS, AS_THEY_COME, ArmRun
from bench.heldout.verdicts import BARS, deficits, held_out_verdicts, target_verdicts
from onboard.evaluate.metrics import calibration_error
from onboard.statistics.student import half_interval

FACTS = HeldOutFacts("python -m bench.heldout", "mini", 3, 300, [], "heldout", 48)


def verdict(results: Results, beginning: str) -> str:
    (line,) = [line for line in held_out_verdicts(results) if line.startswith(f"| {beginning}")]
    return line


def test_a_difference_is_that_of_the_draws_that_both_have_and_its_interval_that_of_the_tasks() -> None:
    rows = made_results({"default": [60, 70, 80], "lora": [50, 65, 70]})
    gain = Results(rows).gain(Results(rows).part(32), "default", "lora")
    assert gain is not None
    half = half_interval(np.array([10.0, 5.0, 10.0]))
    assert (gain.value, gain.high, gain.tasks) == (pytest.approx(25 / 3), pytest.approx(25 / 3 + half), 3)
    del (
        rows[ArmRun("task-0", 32, 0, "lora")],
        rows[ArmRun("task-1", 32, 0, "lora")],
        rows[ArmRun("task-1", 32, 1, "lora")],
    )
    rows[ArmRun("task-0", 32, 0, "default")]["accuracy"] = 0.0  # which counts for nothing without its counterpart
    part = Results(rows).part(32)
    assert Results(rows).by_task(part, "default", "accuracy", "lora") == {"task-0": 10.0, "task-2": 10.0}
    assert Results(rows).gain(part, "default", "full") is None


def test_bars_are_met_at_their_bound_or_above_it() -> None:
    encoder, random, lora = BARS[:3]
    rows = made_results({"default": [63.0, 63.0], "random": [60.0, 60.0], "lora": [63.0, 63.0],
                         "encoder": [50.0, 50.0], "minilm": [50.0, 50.0]})  # fmt: skip
    results = Results(rows)
    part = results.part(32)
    assert "| met |" in encoder.line(results, part)
    assert "| met |" in random.line(results, part)
    assert "**not met**" in lora.line(results, part), "as good is not above"
    assert "not measured yet" in lora.line(results, results.part(16))
    short = made_results({"default": [62.96, 62.96], "random": [60.0, 60.0]})
    assert "+2.96" in random.line(Results(short), part), "a verdict is not hidden by rounding"


def test_a_task_further_below_the_readout_than_it_may_be_is_a_deficit() -> None:
    rows = made_results({"default": [60.0, 60.0, 60.0], "readout": [61.0, 61.2, 50.0]})
    results = Results(rows)
    assert deficits(results, 32) == {"task-1": pytest.approx(-1.2)}
    assert "1 of 3 tasks | **not met**" in verdict(results, "on no task more than 1 point")
    page = markdown(results, FACTS)
    assert "| task-1 | sentiment | 32 | 60.0 | 61.2 | -1.2 | 0.7, 0.7 |" in page
    assert "| task-0 | sentiment | 32 |" not in page


def test_families_on_which_a_rival_is_further_ahead_than_it_may_be_are_named() -> None:
    rows = made_results({"default": [60.0, 60.0, 60.0], "setfit": [60.0, 62.0, 64.0], "minilm": [61.0, 61.0, 61.0]})
    for run, row in rows.items():
        row["family"] = "topic" if run.task == "task-2" else "sentiment"
    results = Results(rows)
    line = verdict(results, "on no family more than 1 point below SetFit")
    assert "| n = 32: 1 of 2; topic -4.0 (n = 32) | **not met** |" in line, "a family is the mean of its tasks"
    assert "0 of 2 | met |" in verdict(results, "on no family more than 1 point below MiniLM features")
    assert "not measured yet" in verdict(results, "on no family more than 1 point below full fine-tuning")
    assert "-2.0 (-7.0 to +3.0), 3 tasks | **not met** |" in verdict(
        results, "the default above SetFit on MiniLM, n = 32"
    )
    assert "| topic | 1 | 60.0 | 64.0 | 61.0 | -1.0 | -4.0 |" in markdown(results, FACTS)


@pytest.mark.parametrize(
    ("rows", "gain", "enough"), [(4, 3.9, False), (4, 4.0, True), (16, 2.0, True), (32, 1.4, False), (32, 1.5, True)]
)
def test_what_earlier_tasks_are_worth_is_judged_against_the_readout_of_the_rows_alone(
    rows: int, gain: float, enough: bool
) -> None:
    results = Results(made_results({"default": [50.0 + gain], "readout": [50.0]}, rows))
    (line,) = [line for line in held_out_verdicts(results) if f"above the readout alone, n = {rows} |" in line]
    assert line.endswith("| met |" if enough else "| **not met** |")


def test_macro_f1_is_judged_where_a_label_is_rare_only() -> None:
    rows = made_results({"default": [60.0, 90.0], "tfidf_balanced": [50.0, 90.0]})
    for run, row in rows.items():
        row["rarest"] = 0.1 if run.task == "task-0" else 0.4
    assert "+10.0, 1 task | met" in verdict(Results(rows), "macro-F1 at least 5 points above balanced TF-IDF, tasks "
                                            "with a label under 20%, n = 32")  # fmt: skip
    assert "not measured yet" in verdict(Results(rows), "macro-F1 at least 5 points above balanced TF-IDF, tasks with "
                                         "a label under 20%, 100 rows as they come")  # fmt: skip


def test_labels_without_an_answer_are_counted_and_named() -> None:
    run = ArmRun("spam", 100, 0, "default", AS_THEY_COME)
    rows = {run: made(run, 87.0, unanswered=["spam"], rarest=0.13), replace(run, draw=1): made(run, 90.0, rarest=0.13)}
    line = verdict(Results(rows), "no label of more than 8 training rows without an answer, 100 rows as they come")
    assert "1 of 2 runs lack one | **not met**" in line
    assert "| spam | 100 | 0 | natural | spam |" in markdown(Results(rows), FACTS)


def test_starts_are_counted_where_the_base_has_the_family() -> None:
    first, second = ArmRun("one", 16, 0, "default"), ArmRun("two", 16, 0, "default")
    rows = {
        first: made(first, 60.0, top1=False, start="cola@v1", start_family="grammar"),
        second: made(second, 60.0, family="legal", in_base=False, top1=False, top3=False),
    }
    page = markdown(Results(rows), FACTS)
    assert "| sentiment | yes | – | 0 and 1 of 1 | – | – | grammar |" in page
    assert "| legal | no | – | – | – | – | sentiment |" in page
    assert "| **all** | yes | – | 0 and 1 of 1 | – | – | grammar |" in page


def test_a_page_of_nothing_and_of_a_part_says_what_is_missing() -> None:
    missing = [ArmRun("one", 16, 0, "default"), ArmRun("one", 16, 1, "default"), ArmRun("one", 16, 0, "lora")]
    page = markdown(Results({}), replace(FACTS, missing=missing))
    assert "**3 runs of the plan were not made (the default, as it is published 2; LoRA, r = 8 1).**" in page
    assert "| met |" not in page
    run = ArmRun("one", 16, 0, "readout")
    page = markdown(Results({run: made(run, 60.0)}), FACTS)
    assert "| readout alone | 1 | 60.0 | 58.0 | 1.000 | – | – | – |" in page
    failed: Row = {**made(run, 0.0), "accuracy": None, "macro_f1": None, "log_loss": None, "calibration": None,
                   "reason": "A label has no training row."}  # fmt: skip
    assert "1 run made no readout" in markdown(Results({run: failed}), FACTS)


def test_a_page_of_all_arms_has_a_row_for_each() -> None:
    rows = made_results({arm: [60.0, 61.0] for arm in ARMS}, rarest=0.1)
    page = markdown(Results(rows), FACTS)
    (table,) = re.findall(r"## n = 32\n(.*?)\n## ", page, re.DOTALL)
    assert all(f"| {title} | 2 | 60.5 |" in table for arm, title in ARMS.items() if arm != "tfidf_balanced")
    assert "By family, n = 32" in page
    assert "| sentiment | 2 | 60.5 |" in page
    assert "Expected calibration error" in page
    assert "at or above MiniLM's, n = 32 | +0.00 (+0.00 to +0.00), 2 tasks | met |" in "\n".join(
        encoder_lines(Results(rows))
    )


def test_targets_are_judged_by_the_levels_and_bars_of_their_own() -> None:
    rows = {
        run: made(run, accuracy, family="nli")
        for task, accuracy in (("cb", 54.9), ("trec", 80.0))
        for run in (ArmRun(task, 32, 0, "default"), ArmRun(task, 32, 0, "embedding"), ArmRun(task, 32, 0, "lora"))
    }
    for task, accuracy in (("cb", 53.9), ("trec", 79.0)):
        rows[ArmRun(task, 32, 0, "embedding")]["accuracy"] = accuracy
    lines = target_verdicts(Results(rows))
    assert "| the default at least 68 on the mean, n = 32 | 67.5 | **not met** |" in lines
    assert "| the default at least 65 on the mean, n = 16 | – | not measured yet |" in lines
    assert "| the default at least 55 on cb, n = 32 | 54.9 | **not met** |" in lines
    assert "| the default at least 60 on trec, n = 32 | 80.0 | met |" in lines
    (beside,) = [
        line for line in lines if line.startswith("| its embedding alone at most 1 point below LoRA, r = 8, n = 32")
    ]
    assert "-1.00" in beside
    assert "| met |" in beside
    page = markdown(Results(rows), replace(FACTS, suite="targets"))
    assert "| on no task more than 1 point below LoRA, r = 8 | n = 32: 0 of 2 | met |" in lines
    assert "| cb | 1 | 54.9 |" in page, "tasks stand apart, though they are of one family"
    assert "## By task, n = 32" in page


@pytest.mark.parametrize(
    ("confidences", "right", "error"),
    [([1.0, 1.0], [1, 1], 0.0), ([0.9, 0.9], [1, 0], 0.4), ([0.62, 0.61], [1, 0], 0.115), ([0.99, 0.51], [1, 0], 0.26)],
)
def test_calibration_is_how_far_confidence_is_from_being_right(
    confidences: list[float], right: list[int], error: float
) -> None:
    probabilities = np.array([[confidence, 1 - confidence] for confidence in confidences])
    truth = np.array([0 if hit else 1 for hit in right], dtype=np.int64)
    assert calibration_error(truth, probabilities) == pytest.approx(error)
