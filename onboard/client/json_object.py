"""A JSON object from a service. Missing and wrong values raise errors that blame the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, NoReturn, Self, TypeVar, cast

from onboard.contract.document import Document, missing, read, shown
from onboard.errors import AnswerError

T = TypeVar("T")
Parsed = TypeVar("Parsed", bound=Document)

_KINDS: Final = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "object"}


class JsonObject(dict[str, Any]):
    """A dict with nested documents. `document[key]` raises AnswerError if the response lacks the key.

    Methods that read a value by type raise AnswerError with the key if the type is wrong.
    """

    place = ""

    @classmethod
    def of(cls, answer: Mapping[str, Any], place: str) -> Self:
        """Return the document of a response from a host called `place`."""
        document = cls((key, cls._part(value, place)) for key, value in answer.items())
        document.place = place
        return document

    @classmethod
    def _part(cls, value: Any, place: str) -> Any:
        if isinstance(value, dict):
            return cls.of(value, place)
        return [cls._part(part, place) for part in value] if isinstance(value, list) else value

    def __missing__(self, key: str) -> NoReturn:
        raise missing(key, self.place)

    def read(self, key: str, kind: type[T]) -> T:
        """Return the value of a key: text, number (float accepts whole ones), Enum member by value, …"""
        return self._of_kind(key, self[key], kind)

    def read_or_none(self, key: str, kind: type[T]) -> T | None:
        """Like `read`, for a required key with a value that may be null."""
        return None if self[key] is None else self.read(key, kind)

    def given(self, key: str, kind: type[T]) -> T | None:
        """Like `read_or_none`, for a key that may be missing, such as in responses of other releases."""
        return self.read_or_none(key, kind) if key in self else None

    def values_of(self, key: str, kind: type[T]) -> tuple[T, ...]:
        """Return a list of values of one type."""
        return tuple(self._of_kind(key, value, kind) for value in self.read(key, list))

    def mapped(self, key: str, kind: type[T]) -> dict[str, T]:
        """Return an object with values of one type."""
        return {name: self._of_kind(f"{key}.{name}", value, kind) for name, value in self.read(key, dict).items()}

    def part(self, key: str) -> JsonObject:
        """Return a nested object."""
        return self.read(key, JsonObject)

    def parts(self, key: str) -> tuple[JsonObject, ...]:
        """Return a list of objects."""
        return self.values_of(key, JsonObject)

    def parsed(self, kind: type[Parsed]) -> Parsed:
        """Return the whole document as a type of the contract."""
        return read(kind, self, self.place)

    def read_by(self, reader: Callable[[Mapping[str, Any]], T]) -> T:
        """Return the result of a reader for the whole document. Its errors about values become AnswerError."""
        try:
            return reader(self)
        except KeyError as error:
            self.__missing__(str(error.args[0]))
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AnswerError("answer-unreadable", place=self.place, reason=error) from error

    def _of_kind(self, key: str, value: Any, kind: type[T]) -> T:
        if issubclass(kind, Enum):
            return self._member(key, value, kind)
        if kind is float and type(value) is int:
            return cast("T", value)  # unchanged: JSON does not distinguish integers and floats
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self._refuse(key, value, f"where this client reads {_article(_KINDS.get(kind, 'object'))}")
        return value

    def _member(self, key: str, value: Any, kind: type[T]) -> T:
        try:
            return kind(value)  # type: ignore[call-arg]  # an Enum, by its value
        except ValueError:
            self._refuse(key, value, "which this client does not know")

    def _refuse(self, key: str, value: Any, why: str) -> NoReturn:
        raise AnswerError("answer-key-wrong", wrong=key, place=self.place, shown=shown(value), reason=why)


def _article(kind: str) -> str:
    return kind if kind == "true or false" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
