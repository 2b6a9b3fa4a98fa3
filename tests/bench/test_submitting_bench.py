"""The measurement of the way to a published version: a verdict that can be red, and a page that says what was kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import submitting


def run(task: str, worker: str, seconds: float, probe: float, truncated: int = 0) -> dict[str, Any]:
    stages = {"check": 0.1, "probe": probe, "train": 12.0, "evaluate": 0.5, "publish": 0.0}
    return {
        "worker": worker, "seconds": seconds, "stages": stages, "chosen": "mean", "truncated": truncated, "task": task,
        "draw": 0, "tried": worker == submitting.BY_DEFAULT, "tuned": False,
    }  # fmt: skip


@pytest.mark.parametrize(("worker", "seconds", "probe", "fast"), [
    ("started", 45.0, 15.0, True), ("started", 45.1, 15.0, False), ("running", 30.0, 10.1, False),
    ("running", 30.0, 10.0, True), ("running", 30.1, 10.0, False), (submitting.BY_DEFAULT, 60.0, 9.0, True),
    (submitting.BY_DEFAULT, 60.1, 9.0, False),
])  # fmt: skip
def test_a_run_is_as_fast_as_wanted_or_not(worker: str, seconds: float, probe: float, fast: bool) -> None:
    assert submitting.kept(run("trec", worker, seconds, probe)) is fast


def test_a_run_that_did_not_try_to_tune_is_to_be_as_fast_as_one_that_was_not_to() -> None:
    assert not submitting.kept({**run("trec", submitting.BY_DEFAULT, 31.0, 9.0), "tried": False})


@pytest.mark.parametrize(("slowest", "code"), [(44.0, 0), (71.0, 1)])
def test_it_fails_when_one_run_took_longer_than_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowest: float, code: int
) -> None:
    def found(task: str, rows: int, draw: int) -> list[dict[str, Any]]:
        assert rows == 16
        embedding = [run(task, "started", slowest, 11.0, truncated=27), run(task, "running", 29.0, 9.0)]
        return [*embedding, run(task, submitting.BY_DEFAULT, 55.0, 9.0)]

    monkeypatch.setattr(submitting, "submitted", found)
    monkeypatch.setattr(submitting, "datasets_there", lambda: True)
    output, table = tmp_path / "found.json", tmp_path / "found.md"
    arguments = ["--tasks", "imdb", "--shots", "16", "--repeats", "2", "--output", str(output), "--table", str(table)]
    assert submitting.main(arguments) == code
    document = json.loads(output.read_text(encoding="utf-8"))
    assert (document["kept"], len(document["runs"])) == (code == 0, 6)
    waited, fast = f"{slowest:.0f} ({slowest:.0f})", 6 if code == 0 else 4
    assert (
        f"| IMDB | 27 | {waited} | 29 (29) | 55 (55) | 2 of 2 | 0 of 2 | 9 (11) | 12 (12) | 31% | {fast} of 6 |"
        in table.read_text("utf-8")
    )


def test_without_the_datasets_it_says_so_and_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.harness.command.Path.is_dir", lambda path: False)
    assert submitting.main([]) == 0
    assert "skipped" in capsys.readouterr().out


def test_rows_are_told_as_a_user_would_write_them() -> None:
    assert submitting._told(submitting.Example("a", None, "yes")) == {"text": "a", "label": "yes"}
    assert submitting._told(submitting.Example("a", "b", 1)) == {"text_a": "a", "text_b": "b", "label": 1}
