"""Server-sent events, limited to the fields that services send: `id`, `event`, `data`, comments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onboard.client.json_object import JsonObject
from onboard.client.problems import event_in_commands
from onboard.contract.jobs import JobEventDocument
from onboard.domain.untrusted_json import parse_json
from onboard.errors import AnswerError


class EventReader:
    """Reads the job events in the lines of a stream."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._data: list[str] = []

    def events(self, line: str) -> Sequence[JobEventDocument | None]:
        """Return the event that a line completes, None for a keep-alive comment, or nothing.

        Raises:
            AnswerError: the response is not an event stream.
        """
        if line.startswith(":"):
            return [None]
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and self._data:
            document = JsonObject.of(_object("\n".join(self._data)), self._place)
            self._data = []
            if "id" in document and "message" in document:
                return [event_in_commands(document).parsed(JobEventDocument)]
        return []


def _object(text: str) -> dict[str, Any]:
    try:
        document = parse_json(text)
    except ValueError as error:
        raise AnswerError("events-unreadable", reason=error) from error
    return document if isinstance(document, dict) else {}
