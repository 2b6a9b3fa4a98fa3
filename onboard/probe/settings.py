"""How the probe goes, without torch: whoever only estimates how long it takes reads its numbers here, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FEWEST_ROWS: Final = 16  # of the last round: below them half of the rows is too little to train on


@dataclass(frozen=True)
class FinalSettings:
    """How the finalists are tried.

    Args:
        steps: of training; 0 leaves the last round out.
        batch: rows a step.
        learning_rate: of z; of the mixture's logits ten times as much.
        mixed: how many of the best make the mixture.
    """

    steps: int = 10
    batch: int = 4
    learning_rate: float = 0.03
    mixed: int = 3


@dataclass(frozen=True)
class RaceSettings:
    """How the race is run.

    Args:
        first_rows: rows of the first round; a round has twice as many as the one before.
        finalists: as many stay whatever happens, so that there is something to compare.
        margin: standard errors of the paired difference by which a candidate must be worse to leave early.
    """

    first_rows: int = 8
    finalists: int = 4
    margin: float = 2.0


@dataclass(frozen=True)
class ProbeSettings:
    """How the choice is made.

    Args:
        exhaustive: measure every candidate on every row instead of racing them.
        race, finals: of the rounds.
        finalists: how many go into the last round, beside the better of random and mean.
    """

    exhaustive: bool = False
    race: RaceSettings = field(default_factory=RaceSettings)
    finals: FinalSettings = field(default_factory=FinalSettings)
    finalists: int = 3
