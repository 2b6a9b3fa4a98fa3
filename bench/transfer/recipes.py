"""The baselines' hyper-parameters: of each the better of two recipes.

On the source tasks (`--suite source --grid`) recipes that train little win, since the backbone has learned them and
answers them as they are. On a target, which it has not seen, such a recipe could be too little: the trained baselines
get a usual one next to it. Both run once (n = 32, the first draw), and each baseline is credited with the one that is
better there on the mean over the targets.
Ours are the service's own, which no target had a say in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

EPOCHS: Final = 3  # at least, where there are more rows than the steps see
MOST_STEPS: Final = 120  # of a recipe, up to 100 rows
BUDGETS: Final = ((40, 16), (MOST_STEPS, 8))  # steps, and rows a step: of the gentle recipes and of the usual ones


@dataclass(frozen=True)
class Recipe:
    """How a method is trained, by Adam with a rate that falls linearly to nothing.

    Args:
        learning_rate: at the first step.
        steps: optimiser steps; more where they would be fewer than three epochs.
        batch: rows a step.
    """

    learning_rate: float
    steps: int
    batch: int = 16

    def steps_for(self, rows: int) -> int:
        """Steps with so many labelled rows."""
        return max(self.steps, math.ceil(EPOCHS * rows / self.batch))


# The basis of the gentle recipes, and its missing measurements.
CHOSEN_BY: Final = "python -m bench.transfer --suite source --grid --shots 32 --seeds 1 --tasks sst2 mrpc qnli mnli"
CHOSEN_WITHOUT: Final = "Adapters†, LoRA and prompt tuning on SST-2 and MNLI only"
GENTLE, USUAL = "gentle", "usual"
TRAINED: Final = ("full", "adapters", "lora", "prompt")  # baselines that have recipes
CHOSEN_AT: Final = 32, 0  # labelled rows and draw where both recipes of a baseline run
CREDITED: Final[Mapping[str, str]] = {"full": GENTLE, "adapters": USUAL, "lora": GENTLE, "prompt": GENTLE}

RecipeKey = tuple[str, str]  # method and name of the recipe
RECIPES: Final[Mapping[RecipeKey, Recipe]] = {
    ("full", GENTLE): Recipe(3e-5, 40), ("full", USUAL): Recipe(1e-4, 120, 8),
    ("adapters", GENTLE): Recipe(3e-4, 40), ("adapters", USUAL): Recipe(1e-3, 120, 8),
    ("lora", GENTLE): Recipe(1e-3, 40), ("lora", USUAL): Recipe(3e-3, 120, 8),
    ("prompt", GENTLE): Recipe(0.03, 40), ("prompt", USUAL): Recipe(0.3, 120, 8),
}  # fmt: skip

_RATES: Final = {
    "full": (3e-5, 1e-4, 3e-4), "adapters": (3e-4, 1e-3, 3e-3),
    "lora": (1e-3, 3e-3, 1e-2), "prompt": (0.03, 0.1, 0.3),
}  # fmt: skip


def recipes_at(method: str, shots: int, seed: int) -> tuple[str, ...]:
    """Names of the recipes that a method runs with."""
    if method not in TRAINED:
        return ("",)
    return (GENTLE, USUAL) if (shots, seed) == CHOSEN_AT else (CREDITED[method],)


def grid(method: str) -> list[Recipe]:
    """The recipes that are tried on the sources; none for a method without hyper-parameters here."""
    alike = next((recipe for (name, _), recipe in RECIPES.items() if name == method), None)
    if alike is None:
        return []
    tried = ((rate, *budget) for rate in _RATES[method] for budget in BUDGETS)
    return [replace(alike, learning_rate=rate, steps=steps, batch=batch) for rate, steps, batch in tried]


def rows_a_step(rows: int, batch: int) -> float:
    """Rows of a step on average, where each epoch is parted evenly and no row is left over."""
    return rows / max(1, rows // min(batch, rows))
