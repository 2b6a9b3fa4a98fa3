"""The orders, and how far each is followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANDOM, UNCERTAIN, MARGIN, APART, SPREAD = "random", "uncertain", "margin", "apart", "spread"
ORDERS: Final[Mapping[str, str]] = {
    RANDOM: "random",
    UNCERTAIN: "the most uncertain answers",
    MARGIN: "the smallest margin between the best two answers",
    APART: "uncertain answers that differ from one another",
    SPREAD: "texts unlike all labeled ones",
}
SHIPPED: Final = MARGIN  # what a project of Label Studio is labeled by
SHORTLIST: Final = 3  # times the wanted texts that are distinguished
TASKS: Final = 12
DRAWS: Final = (0, 1, 2)
POOL: Final = 400  # texts of a task that wait for a label
TEST_ROWS: Final = 300
ROUND: Final = 8  # texts that are labeled before the readout is made again
SHOWN: Final = (0, 8, 16, 32, 64, 96)  # labels after which accuracy is measured
