"""The bench of Kronecker products: it runs, holds both ways against one another, and says which is faster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import kronecker


def test_both_ways_are_measured_and_the_page_shows_their_ratios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    files = ["--output", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")]
    assert kronecker.main(["--tiny", "--rounds", "3", *files]) == 0
    document = json.loads((tmp_path / "out.json").read_text())
    row = document["setups"]["tiny"]
    for word in ("answering", "training"):
        assert row[word]["made_milliseconds"] > 0
        assert f"| tiny | {word} |" in capsys.readouterr().out or word == "training"
    assert document["verdict"] in (tmp_path / "out.md").read_text()


def test_ways_that_differ_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kronecker, "unmade", lambda x, weights: kronecker.made(x, weights) + 1)
    with pytest.raises(AssertionError, match="not close"):
        kronecker.measure(kronecker.TINY["tiny"], rounds=1)


@pytest.mark.parametrize(
    ("ratios", "words"),
    [([0.8, 0.85], "makes no matrix is faster"), ([1.2, 1.3], "with the matrix is faster"), ([0.8, 1.3], "neither")],
)
def test_only_what_is_faster_everywhere_is_called_faster(ratios: list[float], words: str) -> None:
    rows: list[Any] = [{name: {"unmade_to_made": ratio} for name in kronecker.PASSES} for ratio in ratios]
    assert words in kronecker.verdict(rows)
