"""One message of the table: what is wrong, where, and the remedy, as templates that an error's data fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """What an error says.

    Args:
        text: full sentences in the syntax of `str.format`; each field is one of the error's data. A list shows as
            `a, b, c`.
        remedy: what to do about it, likewise. `{remedy}` where the place that raises the error says it.
    """

    text: str
    remedy: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The data that the message needs."""
        templates = f"{self.text}{self.remedy}"
        return frozenset(name for _, name, _, _ in _FORMATTER.parse(templates) if name)

    def render(self, data: Mapping[str, Any]) -> tuple[str, str]:
        """Text and remedy with these data. Raises KeyError where one is missing."""
        return _FORMATTER.vformat(self.text, (), data), _FORMATTER.vformat(self.remedy, (), data)


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """A list as its items between commas, `.19` as the first 19 letters, everything else as `str.format` has it."""
        if isinstance(value, list):
            return ", ".join(map(str, value))
        if format_spec.startswith(".") and format_spec[1:].isdigit():
            return str(value)[: int(format_spec[1:])]
        return str(format(value, format_spec))


_FORMATTER = _Formatter()
