"""Server-sent events, as far as a service sends them: `id`, `event`, `data`, comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from onboard.client.document import Document
from onboard.client.problems import event_in_commands
from onboard.contract.jobs import JobEventDocument
from onboard.domain.untrusted_json import parse_json
from onboard.errors import AnswerError


def job_events(lines: Iterable[str], place: str) -> Iterator[JobEventDocument | None]:
    """The job events in a stream's lines, and None for each comment that keeps the line open.

    Args:
        place: the host that the stream comes from.

    Raises:
        AnswerError: what came is no such stream.
    """
    data: list[str] = []
    for line in lines:
        if line.startswith(":"):
            yield None
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            document = Document.of(_object("\n".join(data)), place)
            data = []
            if "id" in document and "message" in document:
                yield event_in_commands(document).parsed(JobEventDocument)


def _object(text: str) -> dict[str, Any]:
    try:
        document = parse_json(text)
    except ValueError as error:
        raise AnswerError("events-unreadable", reason=error) from error
    return document if isinstance(document, dict) else {}
