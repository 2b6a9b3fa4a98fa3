"""A JSON object that a service answered with, whose missing parts are told as the service's fault."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from onboard.errors import UnavailableError


class Document(dict[str, Any]):
    """A dict, and so are the objects in it. `document[key]` raises UnavailableError where the answer lacks the key."""

    _place = ""

    @classmethod
    def of(cls, answer: dict[str, Any], place: str) -> Self:
        """The document of an answer from a host called `place`."""
        document = cls((key, cls._part(value, place)) for key, value in answer.items())
        document._place = place
        return document

    @classmethod
    def _part(cls, value: Any, place: str) -> Any:
        if isinstance(value, dict):
            return cls.of(value, place)
        return [cls._part(part, place) for part in value] if isinstance(value, list) else value

    def __missing__(self, key: str) -> NoReturn:
        raise UnavailableError(
            f"{self._place} answered without {key!r}, which this client reads.",
            "Check ONBOARD_API_URL, and that the service is of the release of this client: onboard doctor",
            missing=key,
        )
