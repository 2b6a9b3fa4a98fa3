"""The transfer bench on the tiny base with made rows: what it plans, keeps, learns and says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import FILLERS, write_split

from bench.machine import describe
from bench.transfer import __main__ as bench
from bench.transfer import runs
from bench.transfer.cells import AUTO, HAND_PICKED, RANDOM, SOURCES, Run, Wanted, part_of, plan
from bench.transfer.figures import Results, figure, holm, oracle
from bench.transfer.material import Cells
from bench.transfer.page import Facts, lines, markdown
from bench.transfer.plot import svg
from bench.transfer.recipes import MOST_STEPS, RECIPES, Recipe, grid, rows_a_step
from bench.transfer.runs import Row, measure, packed, unpacked
from bench.transfer.sharing import rows_of, run_missing
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.train.fewshot import FewShotSettings

QUICK = {
    "hypernetwork": Recipe(0.01, 60, z_learning_rate=0.1), "full": Recipe(0.003, 60), "adapters": Recipe(0.01, 60),
    "lora": Recipe(0.03, 60), "prompt": Recipe(0.3, 60),
}  # fmt: skip
HANDS = {"imdb": "sst2", "cb": "mnli"}


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


@pytest.mark.parametrize(
    ("method", "start"),
    [("embedding", AUTO), ("embedding", "sst2"), ("hypernetwork", "sst2"), ("full", ""), ("adapters", ""),
     ("lora", ""), ("prompt", ""), ("tfidf", "")],
)  # fmt: skip
def test_each_method_learns_what_one_word_tells(
    cells: Cells, monkeypatch: pytest.MonkeyPatch, method: str, start: str
) -> None:
    monkeypatch.setattr(runs, "few_shot_settings", lambda rows: FewShotSettings(steps=40, learning_rate=0.3, pull=0.0))
    weights = load_engine(cells.base, "cpu").backbone.state_dict()
    before = {name: value.clone() for name, value in weights.items()}
    row = measure(cells, Run("imdb", 32, 0, method, start), QUICK)
    assert row["accuracy"] > 80
    assert row["accuracy"] == pytest.approx(100 * unpacked(row).mean(), abs=0.01)
    assert row["row_passes"] == (0 if method == "tfidf" else 60 * 16)
    assert all(value.equal(before[name]) for name, value in weights.items()), "the shared backbone was trained"


@pytest.mark.parametrize(("rows", "steps"), [(16, 20), (100, 20), (500, 63), (2000, 250)])
def test_the_embedding_is_trained_by_the_service_s_recipe_without_its_curve(rows: int, steps: int) -> None:
    found = runs.few_shot_settings(rows)
    assert (found.steps, found.curve) == (steps, ())
    assert replace(found, curve=FewShotSettings.curve) == FewShotSettings().for_rows(rows)
    assert runs.embedding_passes(rows) == round(steps * found.seeds * rows_a_step(rows, found.batch))


def test_all_methods_have_the_same_rows_and_all_draws_the_same_test_rows(cells: Cells) -> None:
    first = cells.of(Run("imdb", 16, 0, "embedding", AUTO))
    assert cells.of(Run("imdb", 16, 0, "full")) is first
    assert len(first.dataset.train) == 16
    other = cells.of(Run("imdb", 16, 1, "embedding", AUTO))
    assert other.dataset.train != first.dataset.train
    assert other.test == first.test
    assert cells.of(Run("imdb", 32, 0, "full")).test == first.test


def test_the_plan_holds_every_cell_once_and_what_the_goals_need_comes_first() -> None:
    found = plan("target", Wanted())
    assert len(found) == len(set(found)) == 693 + 294 + 84 + 72 + 294
    assert {run.shots for run in found[:231]} == {32}
    starts = {run.start for run in found if (run.task, run.shots, run.method) == ("imdb", 16, "embedding")}
    assert starts == {AUTO, RANDOM, *SOURCES}
    of_footnote = {(run.task, run.method) for run in found if run.shots == 2000}
    assert of_footnote == {
        (t, m) for t in ("imdb", "paws", "trec") for m in ("embedding", "hypernetwork", "full", "tfidf")
    }
    assert not any(run.start == run.task for run in plan("source", Wanted()))


def test_only_what_is_asked_for_is_planned() -> None:
    wanted = Wanted(("paws",), (16,), ("embedding", "lora"), ("hand",), 2)
    assert plan("target", wanted) == [
        Run("paws", 16, seed, *of) for seed in (0, 1) for of in (("embedding", "qqp"), ("lora", ""))
    ]


def test_the_parts_of_several_processes_are_the_whole_plan_and_part_no_cell() -> None:
    everything = plan("target", Wanted(shots=(32,)))
    first, second = (part_of(everything, index, 2) for index in (1, 2))
    assert sorted([*first, *second]) == sorted(everything)
    assert not {run.cell for run in first} & {run.cell for run in second}


def made(run: Run, right: np.ndarray, **more: Any) -> Row:
    accuracy = 100.0 * float(right.mean())
    return {**asdict(run), "accuracy": accuracy, "rows": len(right), "correct": packed(right), "seconds": 1.0,
            "row_passes": 10, "chosen": "sst2", **more}  # fmt: skip


def test_finished_runs_stay_a_line_that_was_cut_off_is_made_again_and_other_settings_are_other_runs(
    tmp_path: Path,
) -> None:
    work, measured = tmp_path / "work.jsonl", []
    planned = [Run("imdb", 16, seed, "full") for seed in (0, 1, 2)]

    def measure_one(run: Run) -> Row:
        measured.append(run.seed)
        return made(run, np.array([True, False]))

    def settings(rate: float) -> Callable[[Run], dict[str, Any]]:
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
    planned = [Run("imdb", 16, seed, "full") for seed in range(4)]
    clock = iter([0.0, 0.0, 1800.0, 3600.0])
    run_missing(
        planned, lambda run: made(run, np.array([True])), lambda run: {}, tmp_path / "work.jsonl", 1.0,
        lambda: next(clock),
    )  # fmt: skip
    assert len(rows_of(planned, lambda run: {}, tmp_path / "work.jsonl")) == 2
    assert "2 runs are left" in capsys.readouterr().out


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_right_answers_survive_their_packing(right: list[bool]) -> None:
    row = {"correct": packed(np.array(right)), "rows": len(right)}
    assert unpacked(row).tolist() == right


def test_the_interval_is_the_binomials_where_only_rows_vary() -> None:
    found = figure([np.array([[1.0, 0.0] * 200])])
    assert (found.value, found.low, found.high) == pytest.approx((50.0, 45.1, 54.9), abs=0.3)


def test_the_interval_holds_what_draws_differ_by() -> None:
    found = figure([np.array([np.zeros(50), np.ones(50)])])  # two draws: one all wrong, one all right
    assert (found.value, found.low, found.high) == pytest.approx((50.0, 0.0, 100.0))


def test_a_mean_over_tasks_varies_less_than_each_and_a_sure_deficit_has_a_small_p() -> None:
    matrix = -np.array([[1.0, 0.0] * 50])
    one, four = figure([matrix]), figure([matrix] * 4)
    assert (four.high - four.low) == pytest.approx((one.high - one.low) / 2, rel=0.1)
    assert four.below == pytest.approx(1 / 4001)
    assert figure([np.zeros((2, 5))]).below == 1.0


def test_the_oracle_is_chosen_on_the_other_draws_and_scored_on_this_one() -> None:
    best_at_first = [[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    steady = [[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    found = oracle(np.array([best_at_first, steady], dtype=np.float64))
    # means by draw: 1, 0, ¼ and 0, ¾, ½. Others of draw 0: ⅛ < ⅝; of draw 1: ⅝ > ¼; of draw 2: ½ > ⅜.
    assert found.tolist() == [steady[0], best_at_first[1], best_at_first[2]]


def test_starts_that_tie_on_the_other_draws_count_half_each() -> None:
    starts = np.array([[[1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    assert oracle(starts)[0].tolist() == [0.5, 1.0]


def test_holms_p_values_are_those_of_the_book() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def results(auto: float, hand: float, seeds: int = 2) -> Results:
    """Made rows of two tasks: of 100 answers `auto` are right from auto, `hand` from the hand-picked source, half from
    everything else."""
    rows = {}
    for run in plan("target", Wanted(tasks=tuple(HANDS), seeds=seeds)):
        share = {AUTO: auto, HANDS[run.task]: hand}.get(run.start, 50)
        rows[run] = made(run, np.arange(100) < share)
    return Results(rows, HANDS, tuple(range(seeds)))


def test_regret_is_what_the_best_start_of_the_other_draws_has_more() -> None:
    found = results(auto=70, hand=80).regrets("embedding", (16, 32, 100))
    assert set(found) == {(task, n) for task in HANDS for n in (16, 100)}
    assert all(matrix.mean() == pytest.approx(0.1) for matrix in found.values())


def test_a_start_that_was_not_measured_leaves_regret_open_and_so_does_a_single_draw() -> None:
    whole = results(auto=70, hand=80)
    lacking = {run: row for run, row in whole.rows.items() if run != Run("imdb", 16, 1, "embedding", "cola")}
    found = Results(lacking, HANDS, (0, 1)).regrets("embedding", (16,))
    assert set(found) == {("cb", 16)}
    assert not results(auto=70, hand=80, seeds=1).regrets("embedding", (16,))


def test_auto_is_below_the_hand_picked_source_only_where_it_is_sure_and_cb_is_not_judged() -> None:
    found = {(each.task, each.shots): each for each in results(auto=70, hand=80).beside_hand("embedding", (16, 32))}
    assert found["imdb", 16].gain.value == pytest.approx(-10)
    assert found["imdb", 16].below
    assert found["cb", 16].p_value is None
    assert not found["cb", 16].below
    assert not any(each.below for each in results(auto=80, hand=80).beside_hand("embedding", (16, 32)))


FACTS = Facts("python -m bench.transfer", "`tiny`", 100, RECIPES, {"steps": 40}, 0, describe())


@pytest.mark.parametrize(
    ("auto", "regret", "hand", "goal"),
    [(80, "0.0 (0.0 to 0.0) over 4 cells | met", "0 of 3 cells | met", "met"),
     (40, "40.0 (34.0 to 46.0) over 4 cells | **not met**", "3 of 3 cells | **not met**", "**not met**")],
)  # fmt: skip
def test_the_page_says_what_was_wanted_and_whether_it_came_about(
    auto: float, regret: str, hand: str, goal: str
) -> None:
    page = markdown(results(auto, hand=80), FACTS)
    told = {line.split(" | ")[0]: line for line in page.splitlines()}
    verdict = told["| regret of auto, embedding only, at most 1 point"]
    assert verdict.endswith(f"| {regret.split(' | ')[1]} |")
    assert verdict.split(" | ")[1].split(" ")[0] == regret.split(" ")[0]
    assert hand in told["| auto is not significantly below the hand-picked source, embedding only"]
    assert told["| goal: embedding only above LoRA, r = 8, n = 32"].endswith(f"| {goal} |")
    floor = told["| floor: embedding only at most 2 points below LoRA, r = 8, n = 32"]
    assert floor.endswith(f"| {goal} |")
    assert "| embedding only | CB | 32 | mnli | sst2, sst2 |" in page
    assert "| 500 | IMDB |" in page
    assert "were not made" not in page


def test_where_runs_are_missing_the_page_says_so_and_claims_nothing() -> None:
    page = markdown(Results({}, HANDS, (0, 1)), Facts(**{**vars(FACTS), "missing": 7}))
    assert "**7 runs of the plan were not made" in page
    assert page.count("| – | not measured |") == 14
    assert "met" not in page.split("## Beside")[0].replace("method", "")


def test_the_plot_has_a_line_a_method_and_a_point_a_number_of_rows() -> None:
    drawn = svg("Accuracy", lines(results(auto=70, hand=80)))
    assert drawn.count("<polyline") == 7
    assert drawn.count("<circle") == 5 * 3 + 2 * 4  # embedding only and TF-IDF have n = 4 too
    assert svg("Accuracy", lines(Results({}, HANDS, (0,)))).endswith("</svg>\n")


@pytest.fixture
def command(tiny_base: Base, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    short = FewShotSettings(steps=2)
    monkeypatch.setattr(runs, "few_shot_settings", lambda rows: short)

    def options(*more: str) -> list[str]:
        return [
            "--base", str(tiny_base.folder), "--data", str(data), "--seeds", "1", "--shots", "16",
            "--work", str(tmp_path / "work.jsonl"), "--output", str(tmp_path / "out.jsonl"),
            "--table", str(tmp_path / "out.md"), *more,
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
    assert "settings" not in rows[0]
    assert "| embedding only, hand-picked |" in (tmp_path / "out.md").read_text()
    assert (tmp_path / "out.svg").read_text().startswith("<svg")


def test_the_plan_tells_what_each_method_costs_and_measures_nothing(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--methods", "embedding", "tfidf", "--starts", "auto", "--plan")) == 0
    told = capsys.readouterr().out
    assert [line.split()[0] for line in told.splitlines()] == ["embedding", "tfidf", "all"]
    assert "core hours" in told
    assert not (tmp_path / "work.jsonl").exists()


def test_recipes_are_tried_within_the_budget_and_on_the_sources_only(
    command: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--grid")) == 2
    assert "recipes are chosen on the sources" in capsys.readouterr().out
    assert set(RECIPES) == {"hypernetwork", "full", "adapters", "lora", "prompt"}
    for method, recipe in RECIPES.items():
        assert recipe in grid(method)
        assert all(each.steps <= MOST_STEPS for each in grid(method))
    assert grid("tfidf") == []


def test_a_grid_on_the_sources_ranks_the_recipes_of_each_method(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def measure_one(cells: Cells, run: Run, recipes: dict[str, Recipe]) -> Row:
        return made(run, np.arange(100) < 1000 * recipes["prompt"].learning_rate / 10)

    monkeypatch.setattr(bench, "measure", measure_one)
    for task in HAND_PICKED["source"]:
        (tmp_path / "source" / task).mkdir(parents=True)
    words = command("--data", str(tmp_path), "--suite", "source", "--methods", "prompt", "--grid")
    assert bench.main(words) == 0
    ranked = [line for line in capsys.readouterr().out.splitlines() if line.startswith("prompt")]
    assert [float(line.split()[1]) for line in ranked] == [30.0, 30.0, 10.0, 10.0, 3.0, 3.0]
    assert "7 runs" in ranked[0]


def test_without_the_datasets_it_is_skipped_and_their_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert f"skipped: the datasets are not here ({tmp_path / 'nowhere' / 'target'})" in capsys.readouterr().out


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit):
        bench.main(["--part", "3/2"])
