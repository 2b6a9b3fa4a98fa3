"""P-values adjusted by Holm's step-down correction (1979)."""

from __future__ import annotations

from collections.abc import Sequence


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in their order: the error of calling any of them wrongly stays below the level."""
    count, running = len(p_values), 0.0
    adjusted = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        running = max(running, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted
