"""How a computation runs: callbacks that may stop it, and numbers of rows at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onboard.model.memory import RowsAtOnce


@dataclass(frozen=True)
class Execution:
    """Callbacks of a computation, and the numbers of rows that it processes at once.

    Args:
        on_step: receives step (from 1) and loss of a training; may raise to stop.
        before_batch: called before every batch that is only scored; may raise to stop.
        trained_at_once: how many rows fit into memory with gradients; kept for further calls.
        scored_at_once: the same for rows that are only scored.
    """

    on_step: Callable[[int, float], None] = lambda *_: None
    before_batch: Callable[[], None] = lambda: None
    trained_at_once: RowsAtOnce | None = None
    scored_at_once: RowsAtOnce | None = None


UNWATCHED: Final = Execution()  # no callbacks and no memory limits
