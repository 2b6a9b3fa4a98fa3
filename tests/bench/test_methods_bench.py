"""bench.methods: trainings on a tiny base, what the rule makes of them, and the page, whatever is missing."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.heldout_tasks import make_tasks

from bench.heldout.plan import ArmRun
from bench.methods import __main__ as bench
from bench.methods import efficiency, throughput
from bench.methods import plan as plans
from bench.methods.choosing import chosen
from bench.methods.figures import AUTO, Scores, regret
from bench.methods.page import Facts, markdown, picture
from bench.methods.plan import DEFAULT, LINEAR, TFIDF
from onboard.bases import Base
from onboard.domain.methods import SMALL
from onboard.pipeline import own_weights, train
from onboard.train.settings import FewShotSettings, OwnWeightsSettings

OTHER, (SMALLER, LARGER) = "compacter", SMALL  # the first is measured, but `auto` does not try it
BYTES = {DEFAULT: 2_500, LINEAR: 2_300, OTHER: 100_000, SMALLER: 300_000, LARGER: 600_000}


def made(
    losses: dict[str, float], accuracy: dict[str, float], task: str = "mood", seen: float = 0.5
) -> dict[ArmRun, Any]:
    """Rows of a cell, of these mean losses on 32 rows that differ by the same, and these accuracies on test rows."""
    rows = np.linspace(-0.1, 0.1, 32)
    return {
        ArmRun(task, 32, 0, arm): {
            "accuracy": accuracy[arm], **({"losses": (rows + losses[arm]).tolist(), "seen": seen,
            "stored_bytes": BYTES[arm]} if arm in losses else {}),
        }
        for arm in accuracy
    }  # fmt: skip


BETTER = made(
    {DEFAULT: 1.0, LINEAR: 1.2, OTHER: 0.9, SMALLER: 0.8, LARGER: 0.7},
    {DEFAULT: 60.0, LINEAR: 55.0, OTHER: 62.0, SMALLER: 62.0, LARGER: 70.0, TFIDF: 50.0},
)
WORSE = made(
    {DEFAULT: 1.0, LINEAR: 1.2, OTHER: 0.7, SMALLER: 1.1, LARGER: 1.1},
    {DEFAULT: 60.0, LINEAR: 55.0, OTHER: 70.0, SMALLER: 52.0, LARGER: 52.0, TFIDF: 50.0}, "kind",
)  # fmt: skip

CURVE = {
    ArmRun("sst2", rows, 0, arm): {"accuracy": accuracy}
    for rows, arm, accuracy in ((100, OTHER, 71.0), (4000, OTHER, 88.5), (4000, TFIDF, 80.0))
}


def test_of_a_task_of_few_rows_no_more_are_planned_than_there_are() -> None:
    planned = plans.plan(plans.SOURCE, plans.CURVE_ROWS, [0], (), [OTHER])
    most = {task: max(run.rows for run in planned if run.task == task) for task in plans.CURVES}
    assert most == {"sst2": 4000, "qqp": 4000, "rte": 2000}


def test_the_rule_reads_what_auto_would_publish_off_the_trainings() -> None:
    (one,), (other,) = chosen(BETTER).values(), chosen(WORSE).values()
    assert (one.arm, one.tried) == (LARGER, (DEFAULT, LINEAR, SMALLER, LARGER))
    assert (other.arm, other.tried) == (DEFAULT, (DEFAULT, LINEAR, SMALLER, LARGER))
    fewer = made({DEFAULT: 1.0, SMALLER: 0.7, LARGER: 0.7}, {DEFAULT: 60.0, SMALLER: 66.0, LARGER: 66.0})
    assert [one.arm for one in chosen(fewer).values()] == [SMALLER]
    assert chosen({run: row for run, row in BETTER.items() if run.arm != LARGER}) == {}  # nobody can tell
    known = made({DEFAULT: 1.0}, {DEFAULT: 95.0}, seen=0.95)
    assert [one.tried for one in chosen(known).values()] == [(DEFAULT,)]


def test_regret_is_told_against_the_best_of_each_cell_and_the_best_single_method() -> None:
    assert regret({**BETTER, **WORSE}, 1.0) == pytest.approx((5.0, 1.0, 2))
    assert regret({}, 1.0) is None


def test_what_is_shared_is_spread_over_tasks() -> None:
    scores = Scores.of(BETTER, 32)
    assert scores.stored(DEFAULT, 1_000_000, 100) == 12_500
    assert scores.stored(LARGER, 1_000_000, 100) == 600_000
    assert scores.of_task(AUTO, "mood") == 70.0


def test_the_page_says_what_there_is_and_what_is_missing() -> None:
    missing = [ArmRun("cb", 32, 0, DEFAULT)]
    page = markdown(Facts("python -m bench.methods", {**BETTER, **WORSE}, WORSE, CURVE, missing, 1_000_000, {}))
    assert "**1 run of the plan was not made.**" in page
    assert "| **`--method auto`** | 70.0 | 60.0 | 65.0 |" in page
    assert "readout alone, n = 32 | – | not measured yet (+5.0 at worst, kind, on 2 of 7) |" in page
    assert "| sst2 | 100 rows | 4,000 rows |" in page
    assert "| compacter | 71.0 | 88.5 |" in page
    assert "| TF-IDF + logistic regression | – | 80.0 |" in page
    assert "Not measured." in page
    assert markdown(Facts("python -m bench.methods", {}, {}, {}, missing, 1_000_000, {})).count("not measured yet") == 5
    assert picture(Facts("", BETTER, {}, {}, [], 1_000_000, {})).count("<circle") == 5


def test_methods_are_compared_on_the_draws_that_both_have() -> None:
    again = {ArmRun(run.task, run.rows, 1, run.arm): {**row, "accuracy": 10.0} for run, row in BETTER.items()}
    rows = {run: row for run, row in {**BETTER, **again}.items() if (run.arm, run.draw) != (OTHER, 1)}
    scores = Scores.of(rows, 32)
    assert scores.gains(OTHER) == {"mood": 70.0 - 62.0}
    assert scores.gains(LINEAR) == {"mood": pytest.approx((15.0 + 0.0) / 2)}
    page = markdown(Facts("", rows, {}, {}, [], 1, {}))
    assert "| readout alone | 32.5 | 32.5 | 2 |" in page
    assert "| compacter | 62.0 | 62.0 | 1 |" in page


def test_trainings_are_made_once_and_the_same_command_goes_on(
    tiny_base: Base,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(own_weights, "OwnWeightsSettings", partial(OwnWeightsSettings, steps=3, most_steps=3))
    monkeypatch.setattr(train, "FewShotSettings", partial(FewShotSettings, steps=5, most_steps=5, batch=8))
    monkeypatch.setitem(plans.SUITES, "target", ("mood",))
    make_tasks(tmp_path / "target")
    words = [
        "--base", str(tiny_base.folder), "--data", str(tmp_path), "--arms", "default,linear,tfidf,bitfit",
        "--rows", "16", "--output", str(tmp_path / "runs.jsonl"), "--table", str(tmp_path / "page.md"),
    ]  # fmt: skip
    assert bench.main(words) == 0
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert [row["arm"] for row in rows] == ["default", "linear", "tfidf", "bitfit"]
    assert [len(row.get("losses", [])) for row in rows] == [16, 16, 0, 16]
    assert rows[1]["stored_bytes"] < rows[0]["stored_bytes"] < rows[3]["stored_bytes"]
    capsys.readouterr()
    assert bench.main(words) == 0
    assert "4 of 4 runs are in" in capsys.readouterr().out
    assert "bitfit" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_costs_are_measured_and_stand_beside_one_another(
    tmp_path: Path, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    every = efficiency.variants("tiny")
    few = ("full-fine-tuning", "compacter", "prompt-tuning-r", efficiency.PEFT_PROMPT)
    monkeypatch.setattr(efficiency, "variants", lambda _: {name: every[name] for name in few})
    monkeypatch.setattr(efficiency, "peak_memory", lambda *_: 1)
    monkeypatch.setattr(throughput, "METHODS", ("bitfit", "prompt-tuning-r"))
    shared = ["--tiny", "--rounds", "2", "--output", str(tmp_path / "runs.jsonl"), "--base", str(tiny_base.folder)]
    assert bench.main(["--efficiency", *shared]) == 0
    assert bench.main(["--throughput", *shared]) == 0
    costs = json.loads((tmp_path / "runs.json").read_text())
    rows = costs["efficiency"]["rows"]
    assert rows["full-fine-tuning"]["to_full"] == 1.0
    assert rows["prompt-tuning-r"]["to_peft"] > 0
    assert rows["compacter"]["stored_bytes"] == 4 * rows["compacter"]["trained"]
    assert costs["throughput"]["mixed_throughput"] > 0
    page = markdown(Facts("", {}, {}, {}, [], 1, costs))
    assert "| compacter |" in page
    assert "Tasks mixed in a batch" in page
