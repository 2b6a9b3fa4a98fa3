"""The bench of SetFit's own sets: without them its page says so, and with one of them it measures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.heldout_rows import made
from support.heldout_tasks import make_tasks

from bench.heldout.figures import Results
from bench.heldout.plan import ArmRun
from bench.setfit_sets import __main__ as bench
from bench.setfit_sets.page import NOT_HERE, verdicts
from bench.setfit_sets.plan import plan
from onboard.bases import Base
from onboard.errors import NotFoundError
from onboard.making.pretrain.teacher import Teacher


@pytest.fixture(autouse=True)
def no_teacher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def load() -> Teacher:
        raise NotFoundError("no teacher", "install it")

    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(Teacher, "load", load)
    monkeypatch.setattr(bench, "PLACE", tmp_path / "work")


def words_of(base: Base, tmp_path: Path, *more: str) -> list[str]:
    files = ["--output", str(tmp_path / "runs.jsonl"), "--table", str(tmp_path / "page.md")]
    return ["--base", str(base.folder), "--data", str(tmp_path / "sets"), *files, *more]


def test_without_the_sets_the_page_says_so_and_shows_what_is_published(tiny_base: Base, tmp_path: Path) -> None:
    assert bench.main(words_of(tiny_base, tmp_path)) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert NOT_HERE in page
    assert "| CR, 8 rows of each class: at or above SetFit, MiniLM-L6 (71.6) | – | not measured yet |" in page
    assert "| SST-5 | – | – | – | 42.2 | – | 51.9 | – |" in page


def test_a_set_that_is_there_is_measured_with_rows_of_each_class(tiny_base: Base, tmp_path: Path) -> None:
    tasks = make_tasks(tmp_path / "tasks")
    shutil.copytree(tasks / "kind", tmp_path / "sets" / "emotion")
    assert bench.main(words_of(tiny_base, tmp_path, "--arms", "readout", "--shots", "8", "--draws", "0,1")) == 0
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(row["task"], row["rows"], row["arm"]) for row in rows} == {("emotion", 32, "readout")}
    assert all(-100 <= row["mcc"] <= 100 for row in rows)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "**CR, AG News, SST-5, Enron spam, Amazon CF cannot be had here**" in page


def test_ours_is_judged_against_the_published_figure_in_its_own_metric() -> None:
    runs = plan({"cr": 2, "amazon_cf": 2}, (8,), (0,), ("default",))
    assert runs == [ArmRun("cr", 16, 0, "default"), ArmRun("amazon_cf", 16, 0, "default")]
    results = Results({run: made(run, 71.6, mcc=19.0) for run in runs})
    by_set = {line.split(",")[0]: line for line in verdicts(results, {"cr": 2, "amazon_cf": 2})}
    assert by_set["| CR"].endswith("| 71.6 | met |")
    assert by_set["| Amazon CF"].endswith("| 19.0 | **not met** |")
    assert "not measured yet" in by_set["| emotion"]
