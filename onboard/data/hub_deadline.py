"""Time limits for the Hugging Face hub, which may be slow or unreachable: seconds instead of minutes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

ANSWER_SECONDS: Final = 5.0  # for one response of the hub
DEADLINE_SECONDS: Final = 15.0  # for finding something there, including name resolution

Result = TypeVar("Result")


def within_deadline(find: Callable[[], Result]) -> Result:
    """Call a function in a thread that is abandoned at the deadline, as name resolution has no timeout.

    Raises:
        TimeoutError: at the deadline. Errors of `find` are passed on.
    """
    results: list[Result] = []
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
    """Return the errors of the hub's client for an unreachable hub; catch its own errors, which are
    subclasses, first.
    """
    from huggingface_hub.errors import HfHubHTTPError

    # the base error of the HTTP library that the hub's client uses
    return (OSError, *(base for base in HfHubHTTPError.__bases__ if issubclass(base, Exception)))
