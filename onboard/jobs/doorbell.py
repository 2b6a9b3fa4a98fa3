"""The doorbell: a broker message that tells sleeping workers that a queue has work. The job itself is a database row.

The message names a queue and carries no work, so lost and duplicate messages are harmless: the reconciler in every
worker sends it again for waiting jobs, and a worker that finds nothing to claim goes back to sleep.
"""

from __future__ import annotations

from typing import Final, Protocol

from onboard.errors import InputError, UnavailableError

DEFAULT_QUEUE: Final = "default"


class Doorbell(Protocol):
    """Wakes one worker of a queue."""

    def ring(self, queue: str) -> None:
        """Send the message once; gives up within seconds.

        Raises UnavailableError if the broker cannot be used, InputError if its URL is invalid.
        """


def ring_or_warn(doorbell: Doorbell, queue: str) -> str | None:
    """Wake a worker after a commit. Since the job is stored, trouble with the broker only returns a warning."""
    try:
        doorbell.ring(queue)
    except (InputError, UnavailableError) as error:
        stored = "The job is stored; a worker will start on it when the broker is available again."
        return f"{error.message} {error.remedy} {stored}"
    return None
