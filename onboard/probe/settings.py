"""Settings of the probe, without torch, so that time estimates can use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FEWEST_ROWS: Final = 16  # minimum for the last round: half of fewer rows is too little for training


@dataclass(frozen=True)
class FinalSettings:
    """Settings of the last round.

    Args:
        steps: of training; 0 skips the last round.
        batch: rows per step.
        learning_rate: of z; the mixture's logits use ten times as much.
        mixed: number of the best candidates in the mixture.
    """

    steps: int = 10
    batch: int = 4
    learning_rate: float = 0.03
    mixed: int = 3


@dataclass(frozen=True)
class RaceSettings:
    """Settings of the race.

    Args:
        first_rows: rows of the first round; each round doubles them.
        finalists: minimum number that always stays, for comparison.
        margin: standard errors of the paired difference by which a candidate must be worse to leave early.
    """

    first_rows: int = 8
    finalists: int = 4
    margin: float = 2.0


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of the choice.

    Args:
        exhaustive: measure every candidate on every row instead of a race.
        race, finals: settings of the rounds.
        finalists: number of candidates in the last round, in addition to the better of random and mean.
    """

    exhaustive: bool = False
    race: RaceSettings = field(default_factory=RaceSettings)
    finals: FinalSettings = field(default_factory=FinalSettings)
    finalists: int = 3
