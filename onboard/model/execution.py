"""How a computation is carried out, whatever it computes: who may stop it, and how much goes through the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onboard.model.memory import RowsAtOnce


@dataclass(frozen=True)
class Execution:
    """Who listens to a computation, and how many rows it takes at once.

    Args:
        on_step: told step (from 1) and loss of a training; may raise to stop.
        before_batch: called before every batch that is only scored; may raise to stop.
        trained_at_once: how many rows fit into the memory with their gradients; kept for further calls.
        scored_at_once: how many do when they are only scored.
    """

    on_step: Callable[[int, float], None] = lambda *_: None
    before_batch: Callable[[], None] = lambda: None
    trained_at_once: RowsAtOnce | None = None
    scored_at_once: RowsAtOnce | None = None


UNWATCHED: Final = Execution()  # nobody listens, and nothing is known of the memory
