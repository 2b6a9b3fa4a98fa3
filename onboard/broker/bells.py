"""Validate messages from the broker: only doorbell messages are accepted.

Anybody with write access to the broker can send anything. Celery follows a message's headers (when to run it, for how
long, under which name), and some unreadable messages stop the consumer. Therefore messages are only inspected: for a
doorbell message, Celery receives a new one that was created here. Any other message is dropped, counted and logged.
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
MOST_BYTES: Final = 16 * 1024  # a doorbell message has about 700
_SILENCE_SECONDS: Final = 10.0  # at most one log line per interval
_NO_WORK: Final[list[Any]] = [[], {}]
_PLAIN: Final[dict[str, Any]] = {
    "eta": None, "expires": None, "shadow": None, "group": None, "group_index": None, "retries": 0,
    "timelimit": [None, None], "compression": None, "stamped_headers": None, "stamps": {}, "replaced_task_nesting": 0,
}  # fmt: skip

_logger = logging.getLogger(__name__)


class NotABellError(ValueError):
    """Why a message is not a doorbell message. The text quotes nothing from the message."""


def require_bell(raw: bytes) -> None:
    """Check that a message is exactly what a doorbell of any release or Celery version sends.

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
    # Celery sets it for messages sent while handling another one
    if not isinstance(headers.get("parent_id"), str | None):
        odd.append("parent_id")
    if odd:
        raise NotABellError(f"its header {odd[0]} asks for something")
    if _work_in(message) != _NO_WORK:
        raise NotABellError("it carries work")


def fresh_bell() -> dict[str, Any]:
    """Return a new doorbell message for Celery that contains nothing from the broker."""
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
    """Accepts doorbell messages and counts dropped ones since the worker started.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # the consumer and the upkeep run in different threads
        self._told_at = -_SILENCE_SECONDS
        self.dropped = 0

    def bell(self, raw: bytes) -> dict[str, Any] | None:
        """Return a new doorbell message if `raw` is one. Otherwise drop it and return None."""
        try:
            require_bell(raw)
        except NotABellError as error:
            self.drop(str(error))
            return None
        return fresh_bell()

    def drop(self, reason: str) -> None:
        """Count a dropped message and log at most one per ten seconds."""
        with self._lock:
            self.dropped += 1
            count, now = self.dropped, self._clock()
            if now - self._told_at < _SILENCE_SECONDS:
                return
            self._told_at = now
        _logger.warning("Dropped an invalid message from the broker: %s. %d since this worker started", reason, count)

    def go_on(self, dropped: int) -> None:
        """Add the count from before the worker restarted."""
        with self._lock:
            self.dropped += dropped


edge: Final = Edge()  # one per process, because Celery creates the channels and passes them no arguments


def _parsed(raw: bytes) -> Any:
    try:
        return parse_json(raw)
    except ValueError as error:
        raise NotABellError("it is not JSON") from error


def _work_in(message: Mapping[str, Any]) -> Any:
    """Return the positional and named arguments of a message."""
    body = message.get("body")
    if not isinstance(body, str):
        raise NotABellError("it has no body")
    try:
        content = _parsed(base64.b64decode(body, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotABellError("its body is not in Base64") from error
    return content[:2] if isinstance(content, list) else content
