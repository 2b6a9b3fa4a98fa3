"""The measurement of the probe: what is made to choose among, resumed where it stopped, and read as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.tiny_training import make_sources

from bench.probe import __main__ as probe
from bench.probe import registry as probe_registry
from bench.probe.page import page
from bench.probe.pool import own, pool
from onboard.bases import Base
from onboard.probe.settings import ProbeSettings
from onboard.train.settings import FewShotSettings


@pytest.fixture
def asked(tmp_path: Path, fingerprinted_base: Base, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    monkeypatch.setattr(probe_registry, "REPEATED", 1)
    sources = make_sources(tmp_path / "sources", rows=40)
    options = ["--data", str(sources), "--base", str(fingerprinted_base.folder), "--work", str(tmp_path / "work")]
    options += ["--tasks", "moods", "--draws", "1", "--shots", "8", "--sizes", "5", "50", "--exhaustive", "5"]
    return [*options, "--output", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")]


def test_every_size_is_probed_and_compared_and_nothing_is_measured_twice(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probe.main(asked) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    cell, *stored = document["rows"]
    small, large = cell["sizes"]
    assert (small["size"], small["measured"]) == (5, 5 + 3)
    assert (large["size"], large["measured"]) == (50, 32 + 8 + 3)
    assert small["passes"] == 8 + 8 * 8  # the fingerprint, then all candidates on all rows: 8 rows are one round
    assert large["best"] == small["best"]  # of more than `--exhaustive`, the best of the most that were measured
    assert [row["versions"] for row in stored] == [5 + 2, 50 + 2]  # and the base's own sources
    assert "| 50 | 43 |" in (tmp_path / "out.md").read_text()

    def never(*_: Any) -> dict[str, Any]:
        raise AssertionError("it was measured again")

    monkeypatch.setattr(probe, "measure", never)
    monkeypatch.setattr(probe_registry, "measure", never)
    assert probe.main(asked) == 0
    assert json.loads((tmp_path / "out.json").read_text())["rows"] == document["rows"]


@pytest.mark.parametrize(
    ("changed", "other"),
    [("ProbeSettings", lambda: ProbeSettings(exhaustive=True)), ("SETTINGS", FewShotSettings(steps=1))],
)
def test_with_other_settings_it_is_measured_again(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, changed: str, other: Any
) -> None:
    measured: list[str] = []

    def measure(base: Base, options: Any, task: str, draw: int) -> dict[str, Any]:
        measured.append(task)
        return {"sizes": [], "one_by_one_cpu_seconds": 0.1}

    monkeypatch.setattr(probe, "measure", measure)
    monkeypatch.setattr(probe_registry, "measure", lambda *_: {})
    monkeypatch.setattr(probe, "page", lambda document: "")
    for _ in range(2):
        assert probe.main(asked) == 0
    monkeypatch.setattr(probe, changed, other)
    assert probe.main(asked) == 0
    assert measured == ["moods", "moods"]


def test_the_pool_of_a_small_registry_is_the_beginning_of_a_larger_one(fingerprinted_base: Base) -> None:
    real, many = own(fingerprinted_base, "sst2"), pool(fingerprinted_base, "sst2", 60)
    names = [stored.candidate.embedding for stored in many]
    assert len(set(names)) == 60
    assert "sst2" not in names
    assert set(names[: len(real)]) == {stored.candidate.embedding for stored in real}
    few = pool(fingerprinted_base, "sst2", 30)
    assert [stored.candidate.embedding for stored in few] == names[:30]
    np.testing.assert_array_equal([stored.candidate.z for stored in few], [stored.candidate.z for stored in many[:30]])
    kinds = [stored.fingerprint.dtype for stored in many] + [stored.candidate.z.dtype for stored in many]
    assert set(kinds) == {np.dtype(np.float32)}


def test_the_table_tells_cost_regret_and_the_ratio_that_is_wanted() -> None:
    def size(size: int, seconds: float, accuracy: float) -> dict[str, Any]:
        return {
            "size": size, "measured": 43, "seconds": 9.9, "cpu_seconds": seconds, "passes": 400, "trained": 200,
            "chosen": "a", "best": "b", "accuracy": accuracy, "loss": 0.5, "best_accuracy": 80.0, "best_loss": 0.4,
        }  # fmt: skip

    rows = [
        {
            "key": ["sha256:0", task, 32, draw], "one_by_one_cpu_seconds": 0.1,
            "sizes": [size(1000, 4.0, accuracy), size(10_000, 6.0, accuracy)],
        }
        for draw in (0, 1) for task, accuracy in (("sst2", 79.0), ("cola", 78.0))
    ]  # fmt: skip
    stored = [
        {"key": ["sha256:0", "registry", size], "versions": size + 2, "candidates": 43, "select_seconds": seconds / 2,
         "collect_seconds": seconds}
        for size, seconds in ((1000, 1.0), (10_000, 6.5))
    ]  # fmt: skip
    machine = {"processor": "quick"}
    facts = {"base": "sha256:0", "shots": 32, "exhaustive": 1000, "command": "bench", "machine": machine}
    alone, one_draw = (page({**facts, "rows": of}) for of in (rows, rows[:2]))
    assert "times as long" not in alone  # what the registry takes is not known
    assert "| +1.50 | +0.100 |" in one_draw  # an interval over two cells would say nothing
    shown = page({**facts, "rows": [*rows, *stored]})
    assert "| 1,000 | 43 | 9.9 | 4.0 | 1,000 | 100.0 | 32,000 | 25.0 | 32.0 | +1.50 (+1.00 to +2.00) | +0.100" in shown
    assert "(among 1,000)" in shown
    assert "10,000 embeddings take 2.50 times as long as 1,000 (wanted: below 2): 12.5 and 5.0 s" in shown
