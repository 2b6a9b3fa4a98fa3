"""What the transfer bench makes of its rows: regret, the recipe that is credited, the page and the plot."""

from __future__ import annotations

import numpy as np
import pytest
from support.transfer_rows import made

from bench.harness.figures import figure
from bench.harness.holm import holm_adjusted
from bench.harness.lines import svg
from bench.transfer.cells import AUTO, TrainingRun, Wanted, plan
from bench.transfer.figures import Key, Results, oracle
from bench.transfer.page import Facts, lines, markdown
from bench.transfer.recipes import CHOSEN_BY, CREDITED, GENTLE, RECIPES, USUAL

HANDS = {"imdb": "sst2", "cb": "mnli"}


def test_the_oracle_is_chosen_on_the_other_draws_and_scored_on_this_one() -> None:
    best_at_first = [[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 1]]
    steady = [[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    chosen = oracle(np.array([best_at_first, steady], dtype=np.float64))
    # means by draw: 1, 0, ¼ and 0, ¾, ½. Others of draw 0: ⅛ < ⅝; of draw 1: ⅝ > ¼; of draw 2: ½ > ⅜.
    assert chosen.tolist() == [steady[0], best_at_first[1], best_at_first[2]]


def test_starts_that_tie_on_the_other_draws_count_half_each() -> None:
    starts = np.array([[[1.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    assert oracle(starts)[0].tolist() == [0.5, 1.0]


def test_holms_p_values_are_those_of_the_book() -> None:
    assert holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm_adjusted([0.6, 0.7]) == [1.0, 1.0]
    assert holm_adjusted([]) == []


def results(auto: float, hand: float, seeds: int = 2, gentle: float = 50) -> Results:
    """Made rows of two tasks: of 100 answers `auto` are right from auto, `hand` from the hand-picked source, `gentle`
    by baselines with the gentle recipe, 40 with the usual one, half by everything else."""
    rows = {}
    for run in plan("target", Wanted(tasks=tuple(HANDS), seeds=seeds)):
        share = {AUTO: auto, HANDS[run.task]: hand, GENTLE: gentle, USUAL: 40}.get(run.start or run.recipe, 50)
        rows[run] = made(run, np.arange(100) < share)
    return Results(rows, HANDS, tuple(range(seeds)))


def test_regret_is_what_the_best_start_of_the_other_draws_has_more() -> None:
    regrets = results(auto=70, hand=80).regrets("embedding", (16, 32, 100))
    assert set(regrets) == {(task, n) for task in HANDS for n in (16, 100)}
    assert all(matrix.mean() == pytest.approx(0.1) for matrix in regrets.values())
    assert figure(regrets).cells == 4


def test_a_start_that_was_not_measured_leaves_regret_open_and_so_does_a_single_draw() -> None:
    whole = results(auto=70, hand=80)
    lacking = {run: row for run, row in whole.rows.items() if run != TrainingRun("imdb", 16, 1, "embedding", "cola")}
    regrets = Results(lacking, HANDS, (0, 1)).regrets("embedding", (16,))
    assert set(regrets) == {("cb", 16)}
    assert not results(auto=70, hand=80, seeds=1).regrets("embedding", (16,))


def test_means_of_regret_are_told_of_all_tasks_only() -> None:
    whole = results(auto=70, hand=80)
    lacking = {run: row for run, row in whole.rows.items() if run != TrainingRun("imdb", 100, 1, "embedding", "cola")}
    page = markdown(Results(lacking, HANDS, (0, 1)), FACTS)
    assert "| **all** | 16 | **10.0 (10.0 to 10.0)** |\n| all but CB | 16 | 10.0 (" in page
    assert "| CB | 100 | 10.0 (" in page
    assert "| 16 and 100 |" not in page
    assert "| **all** | 16 and 100 | **10.0 (" in markdown(whole, FACTS)


def test_a_regret_that_is_rounded_to_what_was_wanted_has_another_decimal() -> None:
    page = markdown(results(auto=70, hand=71), FACTS)
    assert "16 and 100 | 1.00 (1.0 to 1.0) over 4 cells; bootstrap over tasks: 1.0 to 1.0 | met |" in page


def test_the_cost_of_all_runs_counts_each_training_once() -> None:
    seconds = {("embedding", AUTO): 10, ("hypernetwork", AUTO): 30, ("hypernetwork", "sst2"): 25, ("full", ""): None}
    rows = {
        (run := TrainingRun("imdb", 16, 0, *of)): made(run, np.arange(4) < 3, seconds=taken)
        for of, taken in seconds.items()
    }
    twin = TrainingRun("imdb", 16, 0, "embedding", "sst2")
    rows[twin] = made(twin, np.arange(4) < 3, seconds=None, trained_as=AUTO)
    assert Results(rows, HANDS, (0,)).core_seconds() == (30 + 25, 1)


def test_auto_is_below_the_hand_picked_source_only_where_it_is_sure_and_cb_is_not_judged() -> None:
    beside = {
        (difference.task, difference.shots): difference
        for difference in results(auto=60, hand=80).beside_hand("embedding", (16, 32))
    }
    assert beside["imdb", 16].gain.value == pytest.approx(-20)
    assert beside["imdb", 16].below
    assert beside["cb", 16].p_value is None
    assert not beside["cb", 16].below
    assert not any(difference.below for difference in results(auto=80, hand=80).beside_hand("embedding", (16, 32)))


def test_the_page_shows_what_chose_the_recipe_of_each_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CREDITED, "lora", GENTLE)
    measured = results(auto=70, hand=80, gentle=60)
    gain = measured.gain(HANDS, 32, Key("embedding", AUTO), Key("lora"))
    assert gain is not None
    assert gain.value == pytest.approx(70 - 60)
    page = markdown(measured, FACTS).splitlines()
    gentle, usual = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in page
        if ", r = 8, gentle" in line or ", r = 8, usual" in line
    )
    assert (gentle[0], gentle[4][:4], gentle[5]) == ("LoRA, r = 8, gentle", "60.0", "yes")
    assert (usual[0], usual[4][:4], usual[5]) == ("LoRA, r = 8, usual", "40.0", "")
    lacking = {run: row for run, row in measured.rows.items() if run != TrainingRun("cb", 32, 0, "lora", "", USUAL)}
    assert Results(lacking, HANDS, (0, 1)).chosen_by("lora", USUAL) is None


FACTS = Facts("python -m bench.transfer", "`tiny`", 100, RECIPES, {"steps": 40}, {"beta": 30.0}, ())


@pytest.mark.parametrize(
    ("auto", "regret", "hand", "goal"),
    [(80, "0.0 (0.0 to 0.0) over 4 cells; bootstrap over tasks: 0.0 to 0.0 | met", "0 of 3 cells | met", "met"),
     (40, "40.0 (40.0 to 40.0) over 4 cells; bootstrap over tasks: 40.0 to 40.0 | **not met**",
      "3 of 3 cells | **not met**", "**not met**")],
)  # fmt: skip
def test_the_page_says_what_was_wanted_and_whether_it_came_about(
    auto: float, regret: str, hand: str, goal: str
) -> None:
    page = markdown(results(auto, hand=80), FACTS)
    lines = {line.split(" | ")[0]: line for line in page.splitlines()}
    verdict = lines["| regret of auto, embedding only, at most 1 point, n = 16 and 100"]
    assert verdict.endswith(f"| {regret} |")
    assert hand in lines["| auto is not significantly below the hand-picked source, embedding only"]
    assert lines["| goal: embedding only above LoRA, r = 8, n = 32"].endswith(f"| {goal} |")
    floor = lines["| floor: embedding only at most 2 points below LoRA, r = 8, n = 32"]
    assert floor.endswith(f"| {goal} |")
    assert "| embedding only | CB | 32 | mnli | sst2, sst2 |" in page
    assert "| 500 | IMDB | " in page
    more = lines["| footnote 4: embedding only at most 2 points below hypernetwork + embedding, n = 500"]
    assert more.endswith("| +0.0 (+0.0 to +0.0) | met |")
    assert "were not made" not in page


def test_a_gain_that_is_rounded_to_what_was_wanted_has_another_decimal() -> None:
    lines = {line.split(" | ")[0]: line for line in markdown(results(auto=48, hand=48), FACTS).splitlines()}
    assert "| -2.00 (" in lines["| floor: embedding only at most 2 points below LoRA, r = 8, n = 32"]
    assert "| -2.0 (" in lines["| goal: embedding only above LoRA, r = 8, n = 32"]


def test_where_runs_are_missing_the_page_says_so_and_claims_nothing() -> None:
    gone = [
        TrainingRun("imdb", shots, 0, method, start)
        for shots in (32, 16)
        for method, start in (("hypernetwork", AUTO), ("lora", ""))
    ]
    page = markdown(Results({}, HANDS, (0, 1)), Facts(**{**vars(FACTS), "missing": gone}))
    missing = "hypernetwork + embedding, auto, n = 16 and 32; LoRA, r = 8, n = 16 and 32"
    assert f"**4 runs of the plan were not made ({missing}); what depends on them" in page
    assert page.count("| – | not measured yet (0 of ") == 16
    assert "met" not in page.split("## Compared with the others")[0].replace("method", "")


def test_nothing_is_met_before_every_cell_is_there_and_what_is_there_is_counted() -> None:
    whole, gone = results(auto=80, hand=80), {("cb", 100, 1), ("imdb", 32, 0)}
    page = markdown(
        Results({run: row for run, row in whole.rows.items() if run.cell not in gone}, HANDS, (0, 1)), FACTS
    )
    lines = {line.split(" | ")[0]: line.split(" | ", 1)[1] for line in page.splitlines() if " | " in line}
    assert (
        lines["| regret of auto, embedding only, at most 1 point, n = 16 and 100"]
        == "– | not measured yet (3 of 4 cells) |"
    )
    by_hand = lines["| auto is not significantly below the hand-picked source, embedding only"]
    assert by_hand == "– | not measured yet (2 of 3 cells) |"
    assert lines["| goal: embedding only above LoRA, r = 8, n = 32"] == "– | not measured yet (1 of 2 cells) |"
    assert lines["| goal: hypernetwork + embedding above LoRA, r = 8, n = 16"].endswith("| met |")


def test_one_cell_one_run_and_one_draw_are_not_called_several() -> None:
    hands = {"imdb": HANDS["imdb"]}
    rows = {run: row for run, row in results(auto=80, hand=80, seeds=1).rows.items() if run.task == "imdb"}
    page = markdown(
        Results(rows, hands, (0,)), Facts(**{**vars(FACTS), "missing": [TrainingRun("imdb", 16, 0, "full")]})
    )
    assert "**1 run of the plan was not made (full fine-tuning, n = 16)" in page
    assert "1 draw of n labelled rows" in page
    assert "the intervals are of the test rows alone" in page
    empty = markdown(Results({}, hands, (0,)), FACTS)
    assert "not measured yet (0 of 1 cell)" in empty
    assert "1 cells" not in page + empty


def test_the_page_says_that_baselines_have_the_better_of_two_recipes_and_what_chose_ours() -> None:
    page = markdown(results(auto=80, hand=80), FACTS)
    assert "the one that was better there on the mean over the targets, that is, on test rows: an advantage to" in page
    assert f"(`{CHOSEN_BY}`; " in page
    assert "Embedding only: steps 40. Tuning: beta 30.0;" in page
    assert "--tasks sst2 mrpc qnli mnli" in CHOSEN_BY


def test_the_plot_has_a_line_a_method_and_a_point_a_number_of_rows() -> None:
    drawn = svg("Accuracy", lines(results(auto=70, hand=80)))
    assert drawn.count("<polyline") == 7
    assert drawn.count("<circle") == 5 * 3 + 2 * 4  # embedding only and TF-IDF have n = 4 too
    assert svg("Accuracy", lines(Results({}, HANDS, (0,)))).endswith("</svg>\n")
