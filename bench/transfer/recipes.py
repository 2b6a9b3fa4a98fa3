"""Each method's hyper-parameters, chosen on the source tasks (`--suite source --grid`) and never on the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

EPOCHS: Final = 3  # at least, where there are more rows than the steps see
MOST_STEPS: Final = 120  # of a recipe, up to 100 rows: the fair budget is 120 steps of 16 rows


@dataclass(frozen=True)
class Recipe:
    """How a method is trained, by Adam with a rate that falls linearly to nothing.

    Args:
        learning_rate: at the first step.
        steps: optimiser steps; more where they would be fewer than three epochs.
        batch: rows a step.
        z_learning_rate: of the embedding, where it is trained beside a hypernetwork.
    """

    learning_rate: float
    steps: int
    batch: int = 16
    z_learning_rate: float = 0.0

    def steps_for(self, rows: int) -> int:
        """Steps with so many labelled rows."""
        return max(self.steps, math.ceil(EPOCHS * rows / self.batch))


RECIPES: Final[Mapping[str, Recipe]] = {
    "hypernetwork": Recipe(3e-4, 40, z_learning_rate=0.03),
    "full": Recipe(1e-4, 40),
    "adapters": Recipe(1e-3, 40),
    "lora": Recipe(3e-3, 40),
    "prompt": Recipe(0.1, 120),
}

_RATES: Final = {
    "hypernetwork": (1e-4, 3e-4, 1e-3), "full": (3e-5, 1e-4, 3e-4), "adapters": (3e-4, 1e-3, 3e-3),
    "lora": (1e-3, 3e-3, 1e-2), "prompt": (0.03, 0.1, 0.3),
}  # fmt: skip


def grid(method: str) -> list[Recipe]:
    """The recipes that are tried on the sources; none for a method without hyper-parameters here."""
    rates = _RATES.get(method, ())
    return [replace(RECIPES[method], learning_rate=rate, steps=steps) for rate in rates for steps in (40, MOST_STEPS)]


def rows_a_step(rows: int, batch: int) -> float:
    """Rows of a step on average, where each epoch is parted evenly and no row is left over."""
    return rows / max(1, rows // min(batch, rows))
