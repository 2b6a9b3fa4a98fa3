"""The measurement of the guard: planted changes, what is drawn from them, and the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.guarded import shaken, texts
from support.published import embedding_of

from bench.guard import __main__ as bench
from bench.guard.changes import moved
from bench.guard.material import SINGLES, Task
from bench.guard.measured import SIZES, Change, Effect, measure_all
from bench.guard.page import page
from bench.guard.rates import EDGES, accepted, passed, quantiles, spread
from bench.guard.steps import SEEDS, JudgedStep, judged, summary
from bench.guard.steps import SIZES as STEP_SIZES
from onboard.guard import GuardSettings
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.weights import hypernetwork_digest

SETTINGS = GuardSettings(spread=0.15)


def effect(increase: float, divergence: float, task: str = "sst2", noise: float = 0.0) -> Effect:
    changes = increase + noise * np.random.default_rng(0).standard_normal(200)
    rows, own, singles, pairs = (np.full(count, divergence) for count in (200, 30, SINGLES, 28))
    return Effect(task, changes, np.ones(200), rows, own, singles, pairs, 0.0)


def change(*effects: Effect) -> Change:
    return Change("random", SIZES[0], 1.0, effects)


@pytest.fixture
def prepared(tiny_engine: Engine) -> list[Task]:
    ids = texts(tiny_engine, 16 + 4 + SINGLES + 6)
    trie = tiny_engine.trie(["yes", "no"])
    targets = np.eye(2)[[0, 1] * 8]
    return [Task(f"task-{seed}", embedding_of(seed), trie, ids, targets, np.ones(16), 4) for seed in range(2)]


def test_finished_changes_are_not_measured_again(tiny_engine: Engine, prepared: list[Task], tmp_path: Path) -> None:
    made: list[str] = []

    def leading(name: str) -> Callable[[], Hypernetwork]:
        def make() -> Hypernetwork:
            made.append(name)
            return shaken(tiny_engine.hypernetwork, 0.3)

        return make

    work, settings = tmp_path / "guard.jsonl", {"rows": 16}
    first = measure_all(tiny_engine, lambda: prepared, {"a": leading("a")}, work, settings)
    again = measure_all(tiny_engine, lambda: prepared, {"a": leading("a"), "b": leading("b")}, work, settings)
    assert made == ["a", "b"]
    assert [(measured.direction, measured.size) for measured in again] == [
        (name, size) for name in "ab" for size in SIZES
    ]
    assert [step.share for step in again[: len(SIZES)]] == [step.share for step in first]
    measure_all(tiny_engine, lambda: prepared, {"a": leading("a")}, work, {"rows": 17})
    assert made == ["a", "b", "a"]


def test_rows_own_texts_and_canaries_are_told_apart_and_larger_steps_do_more(
    tiny_engine: Engine, prepared: list[Task], tmp_path: Path
) -> None:
    leading = {"a": lambda: shaken(tiny_engine.hypernetwork, 0.3)}
    steps = measure_all(tiny_engine, lambda: prepared, leading, tmp_path / "guard.jsonl", {})
    one = steps[0].effects[0]
    assert [len(part) for part in (one.changes, one.divergences, one.own, one.singles, one.pairs)] == [
        16, 16, 4, SINGLES, 6,
    ]  # fmt: skip
    sizes = [np.mean([effect.divergences.mean() for effect in step.effects]) for step in steps]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 2 * sizes[0]


def test_the_guard_itself_is_asked_about_each_step_once(
    tiny_engine: Engine, prepared: list[Task], tmp_path: Path
) -> None:
    work, leading = tmp_path / "guard.jsonl", {"a": lambda: shaken(tiny_engine.hypernetwork, 0.3)}
    changes = measure_all(tiny_engine, lambda: prepared, leading, work, {})
    steps = judged(tiny_engine, lambda: prepared, leading, changes, work, SETTINGS, {})
    assert [(step.direction, step.size) for step in steps] == [("a", size) for size in STEP_SIZES]
    assert all(len(step.shares) == len(step.losses) == SEEDS for step in steps)
    whole = {step.size: step.whole for step in steps}
    for step in steps:
        for share, loss in zip(step.shares, step.losses, strict=True):
            assert loss == (pytest.approx(whole[step.size], abs=1e-4) if share == 1.0 else loss if share else 0.0)

    def unwanted() -> list[Task]:
        raise AssertionError

    assert judged(tiny_engine, unwanted, leading, changes, work, SETTINGS, {}) == steps
    (lenient,) = {
        share
        for step in judged(tiny_engine, lambda: prepared, leading, changes, work, GuardSettings(margin=9.0), {})
        for share in step.shares
    }
    assert lenient == 1.0


def test_harmless_steps_held_back_are_false_alarms_and_losses_let_through_misses() -> None:
    harmless = JudgedStep("a", 0.002, 0.004, (1.0, 0.5, 0.0), (0.004, 0.002, 0.0))
    harmful = JudgedStep("a", 0.032, 0.05, (1.0, 0.5, 0.0), (0.05, 0.02, 0.0))
    assert summary([harmless, harmful], 0.02) == {
        "harmless": 3, "held_back": 2, "refused": 1, "let_through": 4, "missed": 1,
    }  # fmt: skip


def test_a_step_goes_on_beyond_its_end(tiny_engine: Engine) -> None:
    before, after = tiny_engine.hypernetwork, shaken(tiny_engine.hypernetwork, 0.1)
    assert hypernetwork_digest(moved(before, after, 0.0)) == hypernetwork_digest(before)
    twice = dict(moved(before, after, 2.0).named_parameters())
    theirs = dict(after.named_parameters())
    for name, weight in before.named_parameters():
        np.testing.assert_allclose(
            twice[name].numpy(), (2 * theirs[name] - weight).detach().numpy(), rtol=1e-4, atol=1e-6
        )


def test_what_harms_nobody_and_is_refused_is_a_false_alarm_and_what_is_lost_and_passes_a_miss() -> None:
    rng = np.random.default_rng(0)
    rates = passed([change(effect(0.0, 0.05)), change(effect(0.05, 0.0))], SETTINGS, rng)[0]
    assert (rates.evidence, rates.false_alarm, rates.miss) == ("divergence", 1.0, 1.0)
    rates = passed([change(effect(0.0, 0.0)), change(effect(0.05, 0.05))], SETTINGS, rng)[0]
    assert (rates.false_alarm, rates.miss) == (0.0, 0.0)
    assert [count for count, _ in rates.shares] == [
        int(low < 0.0 <= high) + int(low < 0.05 <= high) for low, high in pairwise(EDGES)
    ]


def test_more_labelled_rows_refuse_less_of_what_is_harmless() -> None:
    rng = np.random.default_rng(0)
    _, *by_rows = passed([change(effect(0.0, 0.0, noise=0.1))], SETTINGS, rng)
    alarms = [rates.false_alarm or 0.0 for rates in by_rows]
    assert alarms[0] > 0.5 > alarms[-1]


def test_one_task_that_loses_keeps_a_change_from_all() -> None:
    rng = np.random.default_rng(0)
    good, bad = effect(0.0, 0.0), effect(0.05, 0.05, "qqp")
    assert accepted([change(good, bad)], SETTINGS, rng).miss == 0.0
    assert accepted([change(good, effect(0.0, 0.0, "qqp"))], SETTINGS, rng).false_alarm == 0.0


def test_the_spread_is_found_again() -> None:
    rng = np.random.default_rng(0)
    drawn = [
        effect(float(size + 0.2 * size**0.5 * rng.standard_normal()), float(size))
        for size in rng.uniform(0.001, 0.02, 2000)
    ]
    measured = spread([change(*drawn)], 0.2, 48, rng)
    assert measured.deviation == pytest.approx(0.2, rel=0.05)
    assert measured.quantile == pytest.approx(0.2, rel=0.08)
    assert measured.held[0.95] == pytest.approx(0.95, abs=0.015)


def test_quantiles_are_of_the_pairs_of_a_size() -> None:
    changes = [change(effect(step / 1000, 0.003)) for step in range(100)]
    (row,) = quantiles(changes, (0.0, 0.001, 0.01))
    assert (row["low"], row["high"], row["pairs"]) == (0.001, 0.01, 100)
    assert row["q95"] == pytest.approx(0.094, abs=0.001)


def test_without_the_datasets_it_says_so_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--sources", str(tmp_path / "nowhere")]) == 0
    assert "skipped" in capsys.readouterr().out


def test_the_page_is_that_of_the_numbers() -> None:
    root = Path(bench.__file__).parents[2]
    numbers, shown = root / "bench" / "results" / "guard.json", root / "docs" / "results" / "guard.md"
    if not numbers.is_file():
        pytest.skip("not measured yet")
    assert page(json.loads(numbers.read_text(encoding="utf-8"))) == shown.read_text(encoding="utf-8")
