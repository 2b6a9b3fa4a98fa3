"""The bench of serving: it runs, all arms answer the same rows, and the page says what was left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bench import serve
from bench.harness.page import NONE
from onboard.bases import Base


def test_every_arm_is_measured_and_what_does_not_fit_is_left_out(
    tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    one_lora = 6 * 2 * serve.LORA_RANK * (16 + 16) * 4  # six attentions, query and value, float32
    files = ["--output", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")]
    sizes = ["--tasks", "1", "--tasks", "3", "--rows", "4", "--tokens", "5", "--rounds", "2"]
    room = ["--peft-gib", str(2 * one_lora / 2**30)]
    assert serve.main(["--base", str(tiny_base.folder), *sizes, *room, *files]) == 0
    one, three = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert (one["tasks"], three["tasks"], one["lora_bytes_a_task"]) == (1, 3, one_lora)
    for kind in serve.DRAWS:
        assert set(one[kind]) == set(serve.ARMS)
        assert set(three[kind]) == set(serve.ARMS) - {"peft"}
        assert one[kind]["merged"]["of_merged"] == 1.0
        assert all(figures["rows_per_second"] > 0 for figures in one[kind].values())
    assert 0 < three["service"]["bytes_a_task"] <= 4096
    page = (tmp_path / "out.md").read_text()
    assert f"| 3 | zipf | peft | {NONE} |" in page
    assert page in capsys.readouterr().out


def test_rows_are_drawn_evenly_or_by_zipfs_law_and_alike_for_every_arm() -> None:
    even, skewed = (next(serve.draws(kind, 100, 20_000)) for kind in serve.DRAWS)
    assert np.bincount(even, minlength=100).min() > 100
    counts = np.bincount(skewed, minlength=100)
    assert counts[0] > 3 * counts[9] > 3 * counts[80]
    first, second = serve.draws("zipf", 100, 8), serve.draws("zipf", 100, 8)
    for _ in range(3):
        np.testing.assert_array_equal(next(first), next(second))


def test_a_batch_of_many_tasks_with_lora_is_scored_as_each_alone(tiny_base: Base) -> None:
    from onboard.bases.load import load_engine
    from onboard.model.backbone import load_backbone

    engine = load_engine(tiny_base, "cpu")
    ids = [[5, 6, 7, 1]] * 3
    arms = serve.Arms(engine, ids, lambda: load_backbone(tiny_base.folder / "backbone"))
    torch.manual_seed(0)
    model = serve.lora(arms.fresh(), 3)
    rows = next(serve.draws("uniform", 3, 3))
    assert len(set(rows.tolist())) > 1
    mixed = arms.peft(model, 3, "uniform")()
    for row, task in enumerate(rows):
        model.set_adapter(f"task{task}")
        alone = arms._scoring(model.get_base_model())()[row]
        torch.testing.assert_close(mixed[row], alone, rtol=1e-4, atol=1e-5)
