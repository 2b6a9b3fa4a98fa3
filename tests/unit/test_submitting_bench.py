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
        "draw": 0, "tuned": worker == submitting.BY_DEFAULT,
    }  # fmt: skip


@pytest.mark.parametrize(("seconds", "probe", "fast"), [
    (45.0, 15.0, True), (45.1, 15.0, False), (30.0, 10.1, False), (30.0, 10.0, True),
])  # fmt: skip
def test_a_run_is_as_fast_as_wanted_or_not(seconds: float, probe: float, fast: bool) -> None:
    assert submitting.kept(run("trec", "started", seconds, probe)) is fast


@pytest.mark.parametrize(("slowest", "code"), [(44.0, 0), (71.0, 1)])
def test_it_fails_when_one_run_took_longer_than_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowest: float, code: int
) -> None:
    def found(task: str, rows: int, draw: int) -> list[dict[str, Any]]:
        assert rows == 16
        embedding = [run(task, "started", slowest, 11.0, truncated=27), run(task, "running", 31.0, 9.0)]
        return [*embedding, run(task, submitting.BY_DEFAULT, 95.0, 9.0)]

    monkeypatch.setattr(submitting, "submitted", found)
    monkeypatch.setattr(submitting, "datasets_there", lambda: True)
    output, table = tmp_path / "found.json", tmp_path / "found.md"
    arguments = ["--tasks", "imdb", "--shots", "16", "--repeats", "2", "--output", str(output), "--table", str(table)]
    assert submitting.main(arguments) == code
    document = json.loads(output.read_text(encoding="utf-8"))
    assert (document["kept"], len(document["runs"])) == (code == 0, 6)
    waited, fast = f"{slowest:.0f} ({slowest:.0f})", 4 if code == 0 else 2
    assert (
        f"| IMDB | 27 | {waited} | 31 (31) | 10 (11) | 12 (12) | 29% | {fast} of 4 | 95 (95) | 2 of 2 |"
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
