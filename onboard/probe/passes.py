"""Estimate the rows that a probe puts through the model, from its settings; without torch."""

from __future__ import annotations

from typing import Final

from onboard.data.limits import PROBE_ROWS
from onboard.model.cost import Passes
from onboard.probe.candidates import NOTHING_LEARNED
from onboard.probe.prefilter import ANCHORS, NEAREST, SPREAD
from onboard.probe.settings import FEWEST_ROWS, ProbeSettings

# For a base like `mini`, with more tasks and anchors than are measured; includes the fingerprint.
CANDIDATES: Final = NEAREST + SPREAD + ANCHORS + 1 + len(NOTHING_LEARNED)
MIXED_TRAININGS: Final = 3  # of the mixture: on each half, and on all rows


def probe_passes(rows: int) -> Passes:
    """Return the rows for choosing the initialization: a race without early drop-outs, and its last round.

    Args:
        rows: training rows.
    """
    settings = ProbeSettings()
    rows = min(rows, PROBE_ROWS)
    standing, count = CANDIDATES, min(settings.race.first_rows, rows)
    raced = standing * count
    while count < rows:
        standing = min(standing, len(NOTHING_LEARNED) + max(settings.race.finalists, (standing + 1) // 2))
        raced, count = raced + standing * (min(2 * count, rows) - count), min(2 * count, rows)
    if rows < FEWEST_ROWS:
        return Passes(raced)
    finalists = settings.finalists + 1  # includes the better baseline
    trainings = 2 * finalists + MIXED_TRAININGS
    return Passes(raced + (finalists + 1) * rows, trainings * settings.finals.steps * settings.finals.batch)
