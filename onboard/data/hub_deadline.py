"""Asking the Hugging Face hub, which may be slow, silent or out of reach: seconds, never minutes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

ANSWER_SECONDS: Final = 5.0  # for one answer of the hub
DEADLINE_SECONDS: Final = 15.0  # for finding something there, name resolution included

Answer = TypeVar("Answer")


def within_deadline(find: Callable[[], Answer]) -> Answer:
    """Run in a thread that is left behind when time is up: resolving a name cannot be given a timeout.

    Raises:
        TimeoutError: time is up; whatever `find` raises is raised here.
    """
    results: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(find())
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread, which raises it
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {DEADLINE_SECONDS:.0f} seconds")
    return results[0]


def unreachable() -> tuple[type[Exception], ...]:
    """What the hub's client raises when the hub cannot be reached; catch its own errors, which are of these, before."""
    from huggingface_hub.errors import HfHubHTTPError

    # the base error of the HTTP library, whichever library the hub's client uses
    return (OSError, *(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception)))
