"""What the stream bench makes of its steps: the figures, the verdicts of its page, the heat map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.stream_rows import made_step

from bench.harness.report import describe
from bench.stream.figures import Results
from bench.stream.heat import colour, svg
from bench.stream.methods import FROZEN, GUARDED, LORA, METHODS, NAIVE
from bench.stream.page import Facts, markdown
from bench.stream.sharing import Stream
from bench.stream.sizes import Size

TASKS = ("edos_sexism", "suggestion_mining", "it_ticket")
FACTS = Facts("python -m bench.stream", "mini", 32, 200, 64, 0, {}, describe())
STEADY = ((0.8,), (0.8, 0.9), (0.8, 0.9, 0.5))
FORGETS = ((0.8,), (0.7, 0.9), (0.6, 0.95, 0.5))


def stream(accuracies: Sequence[Sequence[float]] = STEADY, rows: int = 40) -> list[dict[str, object]]:
    starts = (0.5, 0.6, 0.4)
    return [made_step(row, start=start, rows=rows) for row, start in zip(accuracies, starts, strict=True)]


def results(orders: int = 1, rows: int = 40, **methods: Sequence[Sequence[float]]) -> Results:
    steps = {
        Stream(order, method): stream(accuracies, rows)
        for method, accuracies in {FROZEN: STEADY, **methods}.items() for order in range(orders)
    }  # fmt: skip
    return Results(steps, [TASKS] * orders)


def test_the_figures_are_those_of_their_definitions() -> None:
    measured = results(naive=FORGETS)
    assert measured.accuracy(NAIVE).value == pytest.approx(100 * (0.6 + 0.95 + 0.5) / 3)
    assert measured.learned(NAIVE).value == pytest.approx(100 * (0.8 + 0.9 + 0.5) / 3)
    assert measured.backward(NAIVE).value == pytest.approx(100 * (-0.2 + 0.05) / 2)
    assert measured.forgetting(NAIVE).value == pytest.approx(100 * (0.2 - 0.05) / 2)
    forward = measured.forward(NAIVE)
    assert forward is not None
    assert forward.value == pytest.approx(100 * (0.6 - 0.25 + 0.4 - 0.25) / 2)
    assert measured.gain(NAIVE, FROZEN).value == pytest.approx(100 * (-0.2 + 0.05) / 3)


def test_forgetting_is_below_the_best_and_backward_transfer_below_the_first() -> None:
    measured = results(naive=((0.5,), (0.9, 0.9), (0.7, 0.9, 0.5)))
    assert measured.forgetting(NAIVE).value == pytest.approx(10.0)
    assert measured.backward(NAIVE).value == pytest.approx(10.0)


def test_what_stays_as_it_was_has_no_backward_transfer_and_no_width() -> None:
    backward = results().backward(FROZEN)
    assert (backward.value, backward.low, backward.high) == (0.0, 0.0, 0.0)


def test_r_has_a_row_for_each_step_and_no_task_before_its_turn() -> None:
    matrix = results(naive=FORGETS).matrix(NAIVE, 0)
    assert matrix[2].tolist() == pytest.approx([60.0, 95.0, 50.0])
    assert np.isnan(matrix[0, 1:]).all()


def test_a_task_is_worse_only_where_its_drop_is_sure_and_the_last_one_cannot_be() -> None:
    drops = results(orders=3, rows=200, naive=FORGETS).drops(NAIVE)
    assert set(drops) == {"edos_sexism", "suggestion_mining"}
    assert drops["edos_sexism"].change.value == pytest.approx(-20.0)
    assert (drops["edos_sexism"].worse, drops["suggestion_mining"].worse) == (True, False)
    slightly = results(rows=40, naive=((0.8,), (0.8, 0.9), (0.775, 0.9, 0.5))).drops(NAIVE)
    assert not slightly["edos_sexism"].worse


def test_a_method_counts_only_at_its_end() -> None:
    measured = results(orders=2, naive=FORGETS)
    assert measured.whole(NAIVE)
    lacking = Results({**measured.steps, Stream(1, NAIVE): stream(FORGETS)[:2]}, measured.tasks)
    assert not lacking.whole(NAIVE)
    assert lacking.whole(FROZEN)


def page(measured: Results) -> str:
    return markdown(measured, [Size("frozen hypernetwork", 3000.0, 4e6)], FACTS)


def test_the_page_says_whether_what_was_wanted_came_about() -> None:
    shown = page(results(orders=2, rows=200, guarded=STEADY, naive=FORGETS))
    assert "| 4 of 4 earlier tasks are generated the same | met |" in shown
    assert "| guarded: mean drop at most 0.2 point | BWT +0.0 (+0.0 to +0.0) | met |" in shown
    assert "significantly worse | none; no answer changed | met |" in shown
    assert "| guarded: average accuracy at or above frozen | +0.0 (+0.0 to +0.0) | met |" in shown
    assert "| stored per task, without snapshot: under 4 KB | 3,000 B | met |" in shown
    lost = page(results(orders=2, rows=200, guarded=FORGETS, naive=STEADY))
    assert "| guarded: no task significantly worse | edos_sexism; where answers changed (2 tasks) a drop of " in lost
    assert "BWT -7.5" in lost
    assert "60.0 (**-20.0**)" in lost
    assert lost.count("**not met**") == 4  # the drop, the worst task, the accuracy, and naive tuning forgets nothing


def test_frozen_weights_that_are_not_the_same_are_told() -> None:
    measured = results()
    steps = {**measured.steps, Stream(0, FROZEN): [*stream()[:2], {**stream()[2], "unchanged": 1}]}
    assert "| 1 of 2 earlier tasks are generated the same | **not met** |" in page(Results(steps, measured.tasks))


def test_what_is_not_measured_yet_is_told_and_left_out() -> None:
    shown = page(results())
    assert shown.count("not measured yet") == 4
    assert f"| {METHODS[GUARDED].title} |" not in shown
    assert f"| {METHODS[FROZEN].title} |" in shown
    empty = markdown(Results({}, [TASKS]), [], FACTS)
    assert empty.count("not measured yet") == 5


def test_what_the_guard_let_through_is_counted_and_its_objections_are_named() -> None:
    measured = results(guarded=STEADY)
    rows = list(measured.rows(GUARDED, 0))
    rows[0] |= {"share": 0.5, "proposed": 0.5, "task": "edos_sexism", "guard": {"tasks": {"fail": ["cola"]}}}
    rows[1] |= {
        "share": 0.0,
        "task": "suggestion_mining",
        "guard": {"tasks": {"pass": ["sst2"], "fail": ["edos_sexism"]}},
    }
    rows[2] |= {"share": 0.0, "task": "trec", "trouble": "Tuning the hypernetwork diverged."}
    shown = page(Results({**measured.steps, Stream(0, GUARDED): rows}, measured.tasks))
    assert "Of 3 tasks taken was 0.25 of the step by 1, nothing by 2." in shown
    for cells in (
        "edos_sexism | 0.5 | 0.5 | cola (fail)",
        "suggestion_mining | 1 | 0 | edos_sexism (fail)",
        "trec | 1 | 0 | Tuning the hypernetwork diverged.",
    ):
        assert f"| 1 | {cells} |" in shown


def test_lora_neither_forgets_nor_carries_over() -> None:
    assert results(lora=STEADY).forward(LORA) is None
    (line,) = [line for line in page(results(lora=STEADY)).splitlines() if line.startswith("| LoRA per task | 7")]
    assert line.split(" | ")[5] == "–"


def test_the_heat_map_has_a_cell_for_each_task_that_was_learned() -> None:
    measured = results(naive=FORGETS)
    drawn = svg("R & more", TASKS, {method: measured.matrix(method, 0) for method in (FROZEN, NAIVE)})
    assert drawn.count(f'fill="{colour(0.0)}"') == 6 + 3
    assert drawn.count(f'fill="{colour(-20.0)}"') == 1 + 1  # 20 and 10 points below: the full colour
    assert ">95</text>" in drawn
    assert "R &amp; more" in drawn


def test_a_loss_and_a_gain_have_colours_of_their_own_and_none_has_none() -> None:
    assert len({colour(change) for change in (-10.0, -3.0, 0.0, 3.0, 10.0)}) == 5
    assert colour(-10.0) == colour(-50.0)
