"""The table of `bench.recipes`: recipes by their mean accuracy on the test rows, against not training at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from onboard.train.fewshot import FewShotSettings

CHOSEN: Final = "chosen"  # the α of least out-of-fold loss
BEST: Final = 20  # recipes that are shown of a kind of start
RECIPE: Final = FewShotSettings()
USED: Final = (RECIPE.learning_rate, RECIPE.pull, RECIPE.steps, RECIPE.seeds, 1.0, None)  # by the service
LEAST_TASKS, LEAST_CELLS = 2, 4  # of an interval: with fewer it would have no width, or next to none
_DRAWS: Final = 2000
_SETTINGS: Final = 6  # where the settings begin in a key; rows of before they were told end there
Recipe = tuple[Any, ...]
Cell = tuple[Any, ...]


def page(rows: Sequence[Mapping[str, Any]], planned: Mapping[str, int]) -> str:
    """Markdown: a table for each kind of start, the best recipe first.

    Args:
        rows: what was measured; those of other settings than the last one's are left out.
        planned: cells of the whole plan, by kind of start.
    """
    settings = rows[-1]["key"][_SETTINGS:] if rows else []
    parts = ["# Recipes of few-shot training, measured on source tasks\n", INTRODUCTION]
    if not settings:
        parts.append(PERMUTED)
    for start in ("auto", "random"):
        mine = [row for row in rows if row["key"][3] == start and row["key"][_SETTINGS:] == settings]
        if mine:
            parts.append(f"## From the {'chosen' if start == 'auto' else 'random'} start\n")
            parts.append(table(mine, planned[start]))
    return "\n".join(parts)


PERMUTED: Final = """In these runs the probe's race took the rows in a plain permutation, the service takes them in an
order any beginning of which is stratified. `python -m bench.recipes` now does so too, and has not been run again.
"""
INTRODUCTION: Final = f"""Each source task is learned as if it were new: its own embedding and the made tasks that
bear its name are not among the candidates. Accuracy in per cent on 300 test rows and loss in nats, means over the
cells (a cell is a task, a number of rows and a draw). "Gain" is what training adds to the start, with a 95% bootstrap
interval over tasks where there are {LEAST_TASKS} of them and {LEAST_CELLS} cells at least. α "chosen" is the one of
least out-of-fold loss; α = 0 is the start itself, whatever the training. Rows are drawn balanced, tests have natural
shares. The service's recipe is bold: of the others' shrinking and constants it has none
([why](../decisions/0011-no-constants-per-label-no-shrinking.md)). Made by `python -m bench.recipes`.
"""


def table(rows: Sequence[Mapping[str, Any]], planned: int) -> str:
    """One line a recipe: the best, and those that the decision speaks of. Only cells that all recipes have count.

    Args:
        rows: what was measured from one kind of start.
        planned: cells of the whole plan.
    """
    found = by_recipe(rows)
    cells = sorted(set.intersection(*(set(each) for each in found.values())))
    if not cells:
        return "Not one cell is complete.\n"
    plain = {cell: next(of[cell] for recipe, of in found.items() if recipe[4] == 0.0) for cell in cells}
    sizes = sorted({cell[1] for cell in cells})
    head = [
        "rate",
        "pull",
        "steps",
        "orders",
        "α",
        "penalty",
        *(f"n = {size}" for size in sizes),
        "mean",
        "gain",
        "loss",
    ]
    lines, used = [], ""
    for recipe, of in found.items():
        accuracy = np.array([100 * of[cell]["test_accuracy"] for cell in cells])
        gain = accuracy - np.array([100 * plain[cell]["test_accuracy"] for cell in cells])
        found_gain = _gain(gain, cells)
        if recipe == USED:
            used = _judged(gain, cells)
        by_size = [f"{accuracy[[cell[1] == size for cell in cells]].mean():.1f}" for size in sizes]
        loss = float(np.mean([of[cell]["test_loss"] for cell in cells]))
        shown = [f"{each:g}" if isinstance(each, float) else str(each or "none") for each in recipe]
        line = [
            *shown,
            *by_size,
            f"{accuracy.mean():.2f}",
            found_gain,
            f"{loss:.3f}",
        ]
        shown_as = [f"**{each}**" for each in line] if recipe == USED else line
        lines.append((-float(accuracy.mean()), recipe, shown_as))
    lines.sort(key=lambda each: each[0])
    kept = [line for place, (_, recipe, line) in enumerate(lines) if place < BEST or spoken_of(recipe)]
    rows_shown = "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *kept])
    return f"{_told(cells, planned, len(kept), len(lines))}\n\n{rows_shown}\n{used}"


def spoken_of(recipe: Recipe) -> bool:
    """Whether it is shown wherever it stands: the used training shrunk or with constants, and every plain training."""
    *training, alpha, penalty = recipe
    if tuple(training) == USED[:4]:
        return penalty is None or alpha == 1.0
    return (alpha, penalty) == USED[4:]


def _gain(gain: np.ndarray, cells: Sequence[Cell]) -> str:
    between = interval(gain, [cell[0] for cell in cells])
    return f"{gain.mean():+.2f}" + (f" ({between[0]:+.1f} to {between[1]:+.1f})" if between else "")


def _judged(gain: np.ndarray, cells: Sequence[Cell]) -> str:
    """What the table says of the service's recipe."""
    between = interval(gain, [cell[0] for cell in cells])
    if between is None:
        verdict = "too few cells to tell whether training helps"
    elif between[0] <= 0 <= between[1]:
        verdict = "these cells do not show that training helps, nor that it harms"
    else:
        verdict = f"on these cells training {'helps' if between[0] > 0 else 'harms'}"
    return f"\nThe service's recipe is {_gain(gain, cells)} points beside its start: {verdict}.\n"


def _told(cells: Sequence[Cell], planned: int, kept: int, count: int) -> str:
    tasks, sizes, draws = (dict.fromkeys(sorted(each)) for each in zip(*cells, strict=True))
    drawn = "1 draw" if len(draws) == 1 else f"{len(draws)} draws"
    which = "" if kept == count else f" The {BEST} best of {count} recipes, and those that the decision speaks of."
    return (
        f"Measured: {len(cells)} of {planned} planned cells ({', '.join(tasks)}; n = {', '.join(map(str, sizes))}; "
        f"{drawn}).{which}"
    )


def by_recipe(rows: Sequence[Mapping[str, Any]]) -> dict[Recipe, dict[Cell, Mapping[str, Any]]]:
    """What was measured, by (rate, pull, steps, orders, α, penalty) and by cell."""
    found: dict[Recipe, dict[Cell, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        task, shots, draw, _, rate, pull = row["key"][:_SETTINGS]
        cell = task, shots, draw
        choices: dict[Recipe, list[Mapping[str, Any]]] = defaultdict(list)
        for each in row["variants"]:
            what = rate, pull, each["steps"], each["seeds"]
            found[*what, each["alpha"], each["penalty"]][cell] = each
            choices[*what, each["penalty"]].append(each)
        for (*settings, penalty), alike in choices.items():
            if len(alike) > 1:
                found[*settings, CHOSEN, penalty][cell] = min(
                    alike, key=lambda each: (each["fold_loss"], each["alpha"])
                )
    return found


def interval(gain: np.ndarray, tasks: Sequence[str]) -> tuple[float, float] | None:
    """95% interval of the mean, by drawing tasks and cells within them; None of fewer than 2 tasks or 4 cells."""
    if len(set(tasks)) < LEAST_TASKS or len(tasks) < LEAST_CELLS:
        return None
    rng, named = np.random.default_rng(0), np.array(tasks)
    groups = [gain[named == task] for task in dict.fromkeys(tasks)]
    drawn = [
        np.concatenate(
            [rng.choice(groups[index], len(groups[index])) for index in rng.integers(0, len(groups), len(groups))]
        )
        for _ in range(_DRAWS)
    ]
    low, high = np.percentile([each.mean() for each in drawn], (2.5, 97.5))
    return float(low), float(high)
