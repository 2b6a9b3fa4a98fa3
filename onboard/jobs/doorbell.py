"""The doorbell: how a sleeping worker hears that a queue has work. The job itself is a row in the registry.

A bell names a queue and carries no work, so lost and doubled bells are harmless: the reconciler inside every worker
rings again for what waits, and a worker that finds nothing to claim goes back to sleep.
"""

from __future__ import annotations

from typing import Final, Protocol

from onboard.errors import InputError, UnavailableError

DEFAULT_QUEUE: Final = "default"


class Doorbell(Protocol):
    """Wakes one worker of a queue."""

    def ring(self, queue: str) -> None:
        """Ring once. Gives up within seconds: raises UnavailableError when the broker cannot be used, InputError when
        its URL names none.
        """


def ring_or_warn(doorbell: Doorbell, queue: str) -> str | None:
    """Ring after a commit. The job is safe already, so trouble with the broker is a warning (returned)."""
    try:
        doorbell.ring(queue)
    except (InputError, UnavailableError) as error:
        stored = "The job is stored; a worker will be rung for it once the broker is back."
        return f"{error.message} {error.remedy} {stored}"
    return None
