"""The bench of serving: it runs, all arms answer the same rows, and the page says what was left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.harness.page import NONE
from bench.serve import __main__ as serve
from bench.serve.arms import ARMS, PEFT, Arms
from bench.serve.drawing import DRAWS, draws
from bench.serve.loras import LORA_RANK, RecentLoras, lora, name_of
from onboard.bases import Base


def test_every_arm_is_measured_and_what_does_not_fit_is_left_out(
    tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    one_lora = 6 * 2 * LORA_RANK * (16 + 16) * 4  # six attentions, query and value, float32
    files = ["--output", str(tmp_path / "out.json"), "--table", str(tmp_path / "out.md")]
    sizes = ["--tasks", "1", "--tasks", "3", "--rows", "4", "--tokens", "5", "--rounds", "2"]
    room = ["--peft-gib", str(2 * one_lora / 2**30)]
    assert serve.main(["--base", str(tiny_base.folder), *sizes, *room, *files]) == 0
    one, three = json.loads((tmp_path / "out.json").read_text())["bases"][0]["rows"]
    assert (one["tasks"], three["tasks"], one["lora_bytes_a_task"]) == (1, 3, one_lora)
    for kind in DRAWS:
        assert set(one[kind]) == set(ARMS)
        assert set(three[kind]) == set(ARMS) - {PEFT}
        assert one[kind]["merged"]["of_merged"] == [1.0, 1.0, 1.0]
        assert all(figures["rows_per_second"] > 0 for figures in one[kind].values())
    assert 0 < three["service"]["bytes_a_task"] <= 4096
    page = (tmp_path / "out.md").read_text()
    assert f"| 3 | zipf | peft | {NONE} |" in page
    assert page in capsys.readouterr().out
    assert (tmp_path / f"out-{tiny_base.folder.name}.svg").read_text().startswith("<svg")


def test_rows_are_drawn_evenly_or_by_zipfs_law_and_alike_for_every_arm() -> None:
    even, skewed = (next(draws(kind, 100, 20_000)) for kind in DRAWS)
    assert np.bincount(even, minlength=100).min() > 100
    counts = np.bincount(skewed, minlength=100)
    assert counts[0] > 3 * counts[9] > 3 * counts[80]
    first, second = draws("zipf", 100, 8), draws("zipf", 100, 8)
    for _ in range(3):
        np.testing.assert_array_equal(next(first), next(second))


def test_a_batch_of_many_tasks_with_lora_is_scored_as_each_alone(tiny_base: Base) -> None:
    from onboard.bases.load import load_engine
    from onboard.model.backbone import load_backbone

    engine = load_engine(tiny_base, "cpu")
    ids = [[5, 6, 7, 1]] * 3
    arms = Arms(engine, ids, lambda: load_backbone(tiny_base.folder / "backbone"))
    torch.manual_seed(0)
    model = lora(arms.fresh(), 3)
    rows = next(draws("uniform", 3, 3))
    assert len(set(rows.tolist())) > 1
    mixed = arms.peft(model, 3, "uniform")()
    for row, task in enumerate(rows):
        model.set_adapter(f"task{task}")
        alone = arms._scoring(model.get_base_model())()[row]
        torch.testing.assert_close(mixed[row], alone, rtol=1e-4, atol=1e-5)


def test_adapters_of_a_few_slots_answer_as_those_of_all_tasks(tiny_base: Base) -> None:
    from onboard.model.backbone import load_backbone

    backbone = load_backbone(tiny_base.folder / "backbone")
    torch.manual_seed(0)
    model, few = lora(load_backbone(tiny_base.folder / "backbone"), 4), lora(backbone, 2)
    weights = [[one for name, one in model.named_parameters() if f".{name_of(task)}." in name] for task in range(4)]
    recent = RecentLoras(few, torch.stack([torch.cat([one.flatten() for one in of]) for of in weights]))
    for tasks in ([0, 1, 1], [2, 1], [0, 2], [3]):
        slots = recent.slots_of(np.array(tasks))
        for task, slot in zip(tasks, slots, strict=True):
            inside = [one for name, one in few.named_parameters() if f".{name_of(slot)}." in name]
            assert all(torch.equal(one, other) for one, other in zip(inside, weights[task], strict=True))
    assert [part.tolist() for part in recent.parts(np.array([3, 1, 3, 0, 1]))] == [[0, 1, 2, 4], [3]]
    assert slots == recent.slots_of(np.array([3]))
