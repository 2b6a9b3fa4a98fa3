"""The transfer bench on the tiny base with made rows: what it plans, keeps, learns and says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiny_training import FILLERS, write_split
from support.transfer_rows import made

from bench.harness import as_a_job
from bench.harness.as_a_job import Lesson
from bench.harness.rows import Row, packed, unpacked
from bench.transfer import __main__ as bench
from bench.transfer import runs
from bench.transfer.cells import AUTO, HAND_PICKED, RANDOM, SOURCES, TrainingRun, Wanted, part_of, plan
from bench.transfer.material import Cells
from bench.transfer.recipes import (
    CHOSEN_AT,
    CREDITED,
    GENTLE,
    MOST_STEPS,
    RECIPES,
    TRAINED,
    USUAL,
    Recipe,
    RecipeKey,
    grid,
)
from bench.transfer.runs import measure
from bench.transfer.sharing import rows_of, run_missing
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.step_length import LossByShare
from onboard.train.worth_tuning import Worth

QUICK = {
    ("full", USUAL): Recipe(0.003, 60), ("adapters", USUAL): Recipe(0.01, 60), ("lora", USUAL): Recipe(0.03, 60),
    ("prompt", USUAL): Recipe(0.3, 60),
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target task `imdb`: one word tells the label."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for split, count in (("train", 80), ("test", 40)):
        write_split(folder / "target" / "imdb", split, [_row(rng, row, split) for row in range(count)])
    return folder


def _row(rng: np.random.Generator, row: int, mark: str) -> dict[str, Any]:
    label = ("negative", "positive")[row % 2]
    words = [*rng.choice(FILLERS, int(rng.integers(1, 4))), *[("awful", "great")[row % 2]] * 2]
    return {"text": f"{' '.join(rng.permutation(words))} {mark[0]}{row}", "label": label}


@pytest.fixture(scope="module")
def cells(tiny_base: Base, data: Path) -> Cells:
    return Cells(tiny_base, data / "target", 40)


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings and tunings of a few steps, where nothing depends on what they learn."""
    monkeypatch.setattr(as_a_job, "SETTINGS", FewShotSettings(steps=2, most_steps=2, curve=()))
    monkeypatch.setattr(runs, "TuningSettings", partial(TuningSettings, steps=4, passes=1, most_steps=4))


@pytest.mark.parametrize(
    ("method", "start", "recipe"),
    [("embedding", AUTO, ""), ("embedding", "sst2", ""), ("hypernetwork", "sst2", ""), ("full", "", USUAL),
     ("adapters", "", USUAL), ("lora", "", USUAL), ("prompt", "", USUAL), ("tfidf", "", "")],
)  # fmt: skip
def test_each_method_learns_what_one_word_tells(
    cells: Cells, monkeypatch: pytest.MonkeyPatch, method: str, start: str, recipe: str
) -> None:
    monkeypatch.setattr(as_a_job, "SETTINGS", FewShotSettings(steps=40, learning_rate=0.3, curve=()))
    monkeypatch.setattr(runs, "TuningSettings", partial(TuningSettings, steps=20, passes=1))
    weights = load_engine(cells.base, "cpu").backbone.state_dict()
    before = {name: value.clone() for name, value in weights.items()}
    row = measure(cells, TrainingRun("imdb", 32, 0, method, start, recipe), QUICK)
    assert row["recipe"] == recipe
    assert row["accuracy"] > 80
    assert row["accuracy"] == pytest.approx(100 * unpacked(row["correct"], row["rows"]).mean(), abs=0.01)
    passes = {"tfidf": 0, "embedding": 800, "hypernetwork": 800 + 4 * 20 * 8}
    assert row["row_passes"] == passes.get(method, 60 * 16)
    assert all(value.equal(before[name]) for name, value in weights.items()), "the shared backbone was trained"


def test_ours_are_trained_as_a_job_trains_but_for_the_curve(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    assert replace(as_a_job.SETTINGS, curve=FewShotSettings.curve) == FewShotSettings()
    few, many = (cells.of(TrainingRun("imdb", rows, 0, "embedding", "sst2")) for rows in (64, 68))
    assert (len(few.ids), len(few.own.ids), few.bench.dataset.validation) == (64, 64, ())
    assert (len(many.ids), len(many.own.ids), len(many.bench.dataset.validation)) == (68, 51, 17)
    assert (runs.embedding_passes(64), runs.embedding_passes(68)) == (80 * (2 * 2 + 4 * 1.5), round(80 * 2 * 51 / 25))
    assert measure(cells, TrainingRun("imdb", 16, 0, "embedding", "sst2"), QUICK)["share"] in {1.0, 0.5, 0.25, 0.125}


def test_a_tuning_goes_on_from_the_embedding_of_the_run_before_and_leaves_the_shared_hypernetwork(
    tiny_base: Base, data: Path, monkeypatch: pytest.MonkeyPatch, briefly: None
) -> None:
    cells, weights = Cells(tiny_base, data / "target", 40), load_engine(tiny_base, "cpu").hypernetwork.state_dict()
    before = {name: value.clone() for name, value in weights.items()}
    alone = measure(cells, TrainingRun("imdb", 16, 0, "embedding", "sst2"), QUICK)
    monkeypatch.setattr(as_a_job, "learn", None)  # the embedding is not trained twice
    cell = cells.of(TrainingRun("imdb", 16, 0, "hypernetwork", "sst2"))
    assert min(cell.start("sst2").seconds, cell.trained["sst2"].seconds) > 0
    cell._starts["sst2"] = replace(cell.start("sst2"), seconds=3000.0)
    cell.trained["sst2"] = replace(cell.trained["sst2"], seconds=4000.0)
    tuned = measure(cells, TrainingRun("imdb", 16, 0, "hypernetwork", "sst2"), QUICK)
    assert (tuned["chosen"], tuned["words"]) == (alone["chosen"], alone["words"])
    assert 8000 > tuned["seconds"] > 7000, "start and training count, whichever run they were made for"
    assert all(value.equal(before[name]) for name, value in weights.items())


@pytest.mark.parametrize("method", ["embedding", "hypernetwork"])
def test_what_auto_trained_from_one_of_the_starts_is_not_trained_again(
    tiny_base: Base, data: Path, monkeypatch: pytest.MonkeyPatch, briefly: None, method: str
) -> None:
    cells = Cells(tiny_base, data / "target", 40)
    trained = TrainingRun("imdb", 16, 0, method, "sst2")
    row = {**measure(cells, trained, QUICK), "settings": {}}
    auto = replace(trained, start=AUTO)
    cells.of(auto)._starts[AUTO] = replace(cells.of(auto).start("sst2"), passes=99)
    again = measure(cells, auto, QUICK)
    monkeypatch.setattr(runs, "learned_for", None)  # nothing is trained
    same = measure(cells, auto, QUICK, lambda: {trained: row})
    assert (same["start"], same["trained_as"], same["probe_passes"]) == (AUTO, "sst2", 99)
    facts = {name: value for name, value in again.items() if name != "seconds"}
    assert {name: value for name, value in same.items() if name != "trained_as"} == facts
    assert measure(cells, trained, QUICK, lambda: {auto: same})["trained_as"] == AUTO


def test_a_start_with_other_words_or_another_embedding_is_trained(cells: Cells) -> None:
    run = TrainingRun("imdb", 16, 0, "embedding", "sst2")
    start, auto = cells.of(run).start("sst2"), replace(run, start=AUTO)
    row = made(auto, np.array([True])) | {"chosen": "sst2", "words": list(start.words)}
    assert runs.same_training(run, start, {auto: row})
    assert runs.same_training(run, start, {auto: row | {"chosen": "random"}}) is None
    assert runs.same_training(run, start, {auto: row | {"words": ["other", "words"]}}) is None
    of_others = {replace(auto, seed=1): row, replace(auto, method="hypernetwork"): row}
    assert runs.same_training(run, start, of_others) is None


@pytest.mark.parametrize(
    ("losses", "worth", "proposed", "by_rule"),
    [((0.1, 9.0), True, 1.0, 1.0), ((9.0, 0.1), True, 0.125, 0.125), ((9.0, 8.0), True, 0.125, 0.0),
     ((0.1, 9.0), False, 1.0, 0.0)],
)  # fmt: skip
def test_the_folds_say_how_much_of_the_step_is_taken_and_what_auto_would_have_published(
    cells: Cells,
    monkeypatch: pytest.MonkeyPatch,
    briefly: None,
    losses: tuple[float, float],
    worth: bool,
    proposed: float,
    by_rule: float,
) -> None:
    whole, eighth = losses
    by_share = {1.0: whole, 0.5: 9.0, 0.25: 9.0, 0.125: eighth}
    monkeypatch.setattr(as_a_job, "worth_tuning", lambda _: Worth(worth, "said so"))
    monkeypatch.setattr(Lesson, "losses", lambda *_: LossByShare(5.0, by_share))
    alone, row = (
        measure(cells, TrainingRun("imdb", 16, 0, method, "sst2"), QUICK) for method in ("embedding", "hypernetwork")
    )
    assert (row["proposed"], row["auto_proposed"]) == (proposed, by_rule)
    assert row["auto"] == (row["correct"] if by_rule else alone["correct"])
    assert row["by_share"] == {"0": 5.0, "1": whole, "0.5": 9.0, "0.25": 9.0, "0.125": eighth}


def test_of_many_rows_held_out_ones_say_how_far_to_tune(cells: Cells) -> None:
    row = measure(cells, TrainingRun("imdb", 68, 0, "hypernetwork", "sst2"), QUICK)
    assert set(row["by_share"]) == {"0", "1", "0.5", "0.25", "0.125"}
    assert row["proposed"] in {1.0, 0.5, 0.25, 0.125}
    assert row["row_passes"] > runs.embedding_passes(68) + 80 * 8  # no folds are tuned


def test_all_methods_have_the_same_rows_and_all_draws_the_same_test_rows(cells: Cells) -> None:
    first = cells.of(TrainingRun("imdb", 16, 0, "embedding", AUTO))
    assert cells.of(TrainingRun("imdb", 16, 0, "full")) is first
    assert len(first.dataset.train) == 16
    other = cells.of(TrainingRun("imdb", 16, 1, "embedding", AUTO))
    assert other.dataset.train != first.dataset.train
    assert other.test == first.test
    assert cells.of(TrainingRun("imdb", 32, 0, "full")).test == first.test


def test_the_plan_holds_every_cell_once_and_what_the_goals_need_comes_first() -> None:
    planned = plan("target", Wanted())
    stages = [217, 378, 294, 84, 72, 126]
    assert len(planned) == len(set(planned)) == sum(stages)
    parted = np.split(np.array(planned, dtype=object), np.cumsum(stages)[:-1])
    assert [{run.shots for run in stage} for stage in parted] == [
        {32}, {16, 100}, {16, 100}, {4}, {500, 2000}, {16, 32, 100},
    ]  # fmt: skip
    assert [{run.method for run in stage if run.start} for stage in parted] == [
        {"embedding", "hypernetwork"}, {"embedding", "hypernetwork"}, {"embedding"}, {"embedding"},
        {"embedding", "hypernetwork"}, {"hypernetwork"},
    ]  # fmt: skip
    for stage in parted:
        assert len(list(groupby(stage, key=lambda run: run.cell))) == len({run.cell for run in stage})
    starts = {run.start for run in planned if (run.task, run.shots, run.method) == ("imdb", 16, "embedding")}
    assert starts == {AUTO, RANDOM, *SOURCES}
    of_footnote = {(run.task, run.method) for run in planned if run.shots == 2000}
    assert of_footnote == {
        (t, m) for t in ("imdb", "paws", "trec") for m in ("embedding", "hypernetwork", "full", "tfidf")
    }
    assert not any(run.start == run.task for run in plan("source", Wanted()))


def test_a_baseline_has_two_recipes_where_they_are_chosen_and_one_elsewhere() -> None:
    planned = plan("target", Wanted())
    for method in TRAINED:
        of = [run for run in planned if run.method == method]
        assert {run.recipe for run in of if (run.shots, run.seed) == CHOSEN_AT} == {GENTLE, USUAL}
        assert {run.recipe for run in of if (run.shots, run.seed) != CHOSEN_AT} == {CREDITED[method]}
    assert {run.recipe for run in planned if run.method not in TRAINED} == {""}


def test_only_what_is_asked_for_is_planned() -> None:
    asked = Wanted(("paws",), (16,), ("embedding", "lora"), ("hand",), 2)
    assert plan("target", asked) == [
        TrainingRun("paws", 16, seed, *of)
        for seed in (0, 1)
        for of in (("embedding", "qqp"), ("lora", "", CREDITED["lora"]))
    ]


def test_the_parts_of_several_processes_are_the_whole_plan_and_runs_of_a_cell_stay_together() -> None:
    everything = plan("target", Wanted(shots=(32,)))
    first, second = (part_of(everything, index, 2) for index in (1, 2))
    assert sorted([*first, *second]) == sorted(everything)
    groups = [list(group) for _, group in groupby(everything, key=lambda run: run.cell)]
    assert all(set(group) <= set(first) or set(group) <= set(second) for group in groups)


def test_finished_runs_stay_a_line_that_was_cut_off_is_made_again_and_other_settings_are_other_runs(
    tmp_path: Path,
) -> None:
    work, measured = tmp_path / "work.jsonl", []
    planned = [
        TrainingRun("imdb", 16, 0, "full", "", USUAL),
        *(TrainingRun("imdb", 16, seed, "full") for seed in (1, 2)),
    ]

    def measure_one(run: TrainingRun) -> Row:
        measured.append(run.seed)
        return made(run, np.array([True, False]))

    def settings(rate: float) -> Callable[[TrainingRun], dict[str, Any]]:
        return lambda run: {"rates": (rate,)}

    run_missing(planned[:2], measure_one, settings(1.0), work)
    text = work.read_text()
    work.write_text(text[: len(text) - 20])  # killed while writing the second
    run_missing(planned, measure_one, settings(1.0), work)
    assert measured == [0, 1, 1, 2]
    assert list(rows_of(planned, settings(1.0), work)) == [planned[0], planned[1], planned[2]]
    assert not rows_of(planned, settings(2.0), work)
    run_missing(planned[:1], measure_one, settings(2.0), work)
    assert measured == [0, 1, 1, 2, 0]


def test_when_the_time_is_up_no_further_run_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = [TrainingRun("imdb", 16, seed, "full") for seed in range(4)]
    clock = iter([0.0, 0.0, 1800.0, 3600.0])
    run_missing(
        planned, lambda run: made(run, np.array([True])), lambda run: {}, tmp_path / "work.jsonl", 1.0,
        lambda: next(clock),
    )  # fmt: skip
    assert len(rows_of(planned, lambda run: {}, tmp_path / "work.jsonl")) == 2
    assert "2 runs are left" in capsys.readouterr().out


def test_rows_of_before_recipes_had_names_are_found_and_each_recipe_has_rows_of_its_own(tmp_path: Path) -> None:
    work, (one, other) = (
        tmp_path / "work.jsonl",
        (TrainingRun("imdb", 32, 0, "full", "", name) for name in (GENTLE, USUAL)),
    )
    old = made(TrainingRun("imdb", 32, 0, "full"), np.array([True]))
    del old["recipe"]
    rows = [{**row, "settings": {}} for row in (old, made(one, np.array([False])))]
    work.write_text("".join(json.dumps(row) + "\n" for row in rows))
    measured = rows_of([TrainingRun("imdb", 32, 0, "full"), one, other], lambda run: {}, work)
    assert {run: row["accuracy"] for run, row in measured.items()} == {
        TrainingRun("imdb", 32, 0, "full"): 100.0,
        one: 0.0,
    }


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_right_answers_survive_their_packing(right: list[bool]) -> None:
    row = {"correct": packed(np.array(right)), "rows": len(right)}
    assert unpacked(row["correct"], row["rows"]).tolist() == right


@pytest.fixture
def command(tiny_base: Base, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(as_a_job, "SETTINGS", FewShotSettings(steps=2, most_steps=2, curve=()))

    def options(*more: str) -> list[str]:
        return [
            "--base", str(tiny_base.folder), "--data", str(data), "--seeds", "1", "--shots", "16",
            "--output", str(tmp_path / "out.jsonl"), "--table", str(tmp_path / "out.md"), *more,
        ]  # fmt: skip

    return options


def test_the_command_measures_goes_on_and_writes_rows_page_and_plot(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command("--methods", "embedding", "tfidf", "--starts", "random", "hand")
    assert bench.main(words) == 0
    assert bench.main([*words, "--part", "1/2"]) == 0
    assert "3 of 3 runs are in" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["method"], row["start"]) for row in rows] == [
        ("embedding", "random"),
        ("embedding", "sst2"),
        ("tfidf", ""),
    ]
    assert [row["settings"]["test_rows"] for row in rows] == [500] * 3, "so that another setting is measured anew"
    assert "| embedding only, hand-picked |" in (tmp_path / "out.md").read_text()
    assert (tmp_path / "out.svg").read_text().startswith("<svg")


def test_the_plan_tells_what_each_method_costs_and_measures_nothing(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--methods", "embedding", "tfidf", "--starts", "auto", "--plan")) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == ["embedding", "tfidf", "all"]
    assert "core hours" in printed
    assert not (tmp_path / "out.jsonl").exists()


def test_recipes_are_tried_within_the_budget_and_on_the_sources_only(
    command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--grid")) == 2
    assert "recipes are chosen on the sources" in capsys.readouterr().out
    assert set(RECIPES) == {(method, name) for method in TRAINED for name in (GENTLE, USUAL)}
    for (method, _), recipe in RECIPES.items():
        assert recipe in grid(method)
        assert all(recipe.steps * recipe.batch <= MOST_STEPS * 8 for recipe in grid(method))
    assert grid("tfidf") == []


def test_a_grid_on_the_sources_ranks_the_recipes_of_each_method(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def measure_one(cells: Cells, run: TrainingRun, recipes: dict[RecipeKey, Recipe]) -> Row:
        return made(run, np.arange(100) < 1000 * recipes["prompt", ""].learning_rate / 10)

    monkeypatch.setattr(bench, "measure", measure_one)
    for task in HAND_PICKED["source"]:
        (tmp_path / "source" / task).mkdir(parents=True)
    words = command("--data", str(tmp_path), "--suite", "source", "--methods", "prompt", "--grid")
    assert bench.main(words) == 0
    head, *ranked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("prompt")]
    assert head == "prompt: 6 of 6 recipes, on the 7 runs that each of them has"
    assert [float(line.split()[1]) for line in ranked] == [30.0, 30.0, 10.0, 10.0, 3.0, 3.0]


def test_recipes_are_ranked_on_the_runs_that_all_of_them_have() -> None:
    easy, hard = TrainingRun("sst2", 32, 0, "lora"), TrainingRun("mnli", 32, 0, "lora")
    measured = {"one": {easy: {"accuracy": 90.0}, hard: {"accuracy": 50.0}}, "other": {hard: {"accuracy": 60.0}}}
    head, *ranking = bench.ranked("lora", measured, 6)
    assert head == "lora: 2 of 6 recipes, on the 1 run that each of them has"
    assert [line.split()[1:] for line in ranking] == [["60.00", "other"], ["50.00", "one"]]
    assert bench.ranked("lora", {"one": {easy: {}}, "other": {hard: {}}}, 6) == [
        "lora: 2 of 6 recipes, on the 0 runs that each of them has"
    ]
    assert bench.ranked("tfidf", {}, 0) == []


def test_without_the_datasets_it_is_skipped_and_their_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert f"skipped: the datasets are not here ({tmp_path / 'nowhere' / 'target'})" in capsys.readouterr().out


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit):
        bench.main(["--part", "3/2"])
