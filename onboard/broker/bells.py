"""The edge to the broker: what comes from it is a bell or nothing.

Whoever may write to the broker can write anything. Celery obeys what a message's headers say (when to run it, for how
long, under which name), and ends or turns deaf at some that it cannot read. Here a message is only looked at: if it is
a bell, Celery is handed one that was made here; anything else is dropped, counted and told in the log.
"""

from __future__ import annotations

import base64
import binascii
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from onboard.domain.untrusted_json import parse_json

BELL: Final = "onboard.bell"
MOST_BYTES: Final = 16 * 1024  # a bell has about 700
_SILENCE_SECONDS: Final = 10.0  # a flood is told in one line, not in a line each
_NO_WORK: Final[list[Any]] = [[], {}]
_PLAIN: Final[dict[str, Any]] = {
    "eta": None, "expires": None, "shadow": None, "group": None, "group_index": None, "retries": 0,
    "timelimit": [None, None], "compression": None, "stamped_headers": None, "stamps": {}, "replaced_task_nesting": 0,
}  # fmt: skip

_logger = logging.getLogger(__name__)


class NotABellError(ValueError):
    """Why a message is none, in words that quote nothing of it."""


def require_bell(raw: bytes) -> None:
    """A message exactly as the doorbell of this or another release rings, whichever Celery it has.

    Raises:
        NotABellError: it is anything else.
    """
    if len(raw) > MOST_BYTES:
        raise NotABellError(f"it is longer than {MOST_BYTES:,} bytes")
    message = _parsed(raw)
    if not isinstance(message, dict):
        raise NotABellError("it is not a JSON object")
    headers = message.get("headers")
    if not isinstance(headers, dict) or headers.get("task") != BELL:
        raise NotABellError(f"its task is not {BELL}")
    odd = [name for name, plain in _PLAIN.items() if headers.get(name, plain) not in (plain, None)]
    if not isinstance(headers.get("parent_id"), str | None):  # whoever rings while it answers a bell: Celery notes it
        odd.append("parent_id")
    if odd:
        raise NotABellError(f"its header {odd[0]} asks for something")
    if _work_in(message) != _NO_WORK:
        raise NotABellError("it carries work")


def fresh_bell() -> dict[str, Any]:
    """A message for Celery, made here: nothing of what came from the broker is in it."""
    number = str(uuid.uuid4())
    return {
        "body": base64.b64encode(b"[[], {}, {}]").decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": BELL, "id": number, "root_id": number, "parent_id": None, **_PLAIN,
                    "ignore_result": True},
        "properties": {"correlation_id": number, "delivery_tag": number, "delivery_info": {}, "priority": 0,
                       "body_encoding": "base64"},
    }  # fmt: skip


class Edge:
    """Lets bells through, and counts what is dropped since this worker began.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # consumer and upkeep are different threads
        self._told_at = -_SILENCE_SECONDS
        self.dropped = 0

    def bell(self, raw: bytes) -> dict[str, Any] | None:
        """A fresh bell if `raw` is one; None once it is dropped."""
        try:
            require_bell(raw)
        except NotABellError as error:
            self.drop(str(error))
            return None
        return fresh_bell()

    def drop(self, reason: str) -> None:
        """Count a message that is no bell; at most one in ten seconds is told."""
        with self._lock:
            self.dropped += 1
            count, now = self.dropped, self._clock()
            if now - self._told_at < _SILENCE_SECONDS:
                return
            self._told_at = now
        _logger.warning("Dropped an invalid message from the broker: %s. %d since this worker started", reason, count)

    def go_on(self, dropped: int) -> None:
        """Count on from what this worker had dropped before it began anew."""
        with self._lock:
            self.dropped += dropped


edge: Final = Edge()  # of this process: Celery makes the channels, and hands them nothing of ours


def _parsed(raw: bytes) -> Any:
    try:
        return parse_json(raw)
    except ValueError as error:
        raise NotABellError("it is not JSON") from error


def _work_in(message: Mapping[str, Any]) -> Any:
    """Positional and named arguments."""
    body = message.get("body")
    if not isinstance(body, str):
        raise NotABellError("it has no body")
    try:
        content = _parsed(base64.b64decode(body, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotABellError("its body is not in Base64") from error
    return content[:2] if isinstance(content, list) else content
