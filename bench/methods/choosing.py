"""The choice of `--method auto` among trainings that were made: the same losses of the same rows decide.

Nothing is trained again, since what `auto` tries is trained as if it had been requested by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.harness.rows import Row
from bench.heldout.plan import ArmRun
from bench.methods.plan import DEFAULT, LINEAR
from onboard.domain.methods import SMALL
from onboard.train.method_choice import WITHIN, Tried, cheapest, nothing_to_gain

Cell = tuple[str, int, int, str]


@dataclass(frozen=True)
class Chosen:
    """The version that `auto` publishes for a cell.

    Args:
        arm: of whom.
        tried: arms that it trained.
        row: of the published one.
    """

    arm: str
    tried: tuple[str, ...]
    row: Row


def chosen(rows: Mapping[ArmRun, Row], errors: float = WITHIN) -> dict[Cell, Chosen]:
    """Of every cell whose rows tell what would have been tried.

    Args:
        rows: by run.
        errors: standard errors within which fewer bytes decide.
    """
    cells: dict[Cell, dict[str, Row]] = {}
    for run, row in rows.items():
        cells.setdefault(run.cell, {})[run.arm] = row
    by_rule = {cell: _of_cell(by_arm, errors) for cell, by_arm in cells.items()}
    return {cell: one for cell, one in by_rule.items() if one is not None}


def _of_cell(by_arm: Mapping[str, Row], errors: float) -> Chosen | None:
    if "losses" not in by_arm.get(DEFAULT, {}):
        return None
    tried = [_tried(arm, by_arm[arm]) for arm in (DEFAULT, LINEAR) if arm in by_arm]
    for arm in SMALL:
        if nothing_to_gain(tried):
            break
        if arm not in by_arm:
            return None  # not measured
        tried.append(_tried(arm, by_arm[arm]))
    arm = cheapest(tried, errors).method
    return Chosen(arm, tuple(one.method for one in tried), by_arm[arm])


def _tried(arm: str, row: Row) -> Tried:
    return Tried(arm, np.array(row["losses"]), row["seen"], row["stored_bytes"])
