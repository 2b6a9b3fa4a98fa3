"""One message of the table: templates of the text and the remedy, filled in with an error's data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """The message of an error.

    Args:
        text: full sentences in the syntax of `str.format`; each field is a key of the error's data. A list is shown as
            `a, b, c`.
        remedy: what to do about it, in the same syntax; `{remedy}` if the code that raises the error passes it.
    """

    text: str
    remedy: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The keys of the data that the message needs."""
        templates = f"{self.text}{self.remedy}"
        return frozenset(name for _, name, _, _ in _FORMATTER.parse(templates) if name)

    def render(self, data: Mapping[str, Any]) -> tuple[str, str]:
        """Fill in the data and return text and remedy. Raises KeyError if a key is missing."""
        return _FORMATTER.vformat(self.text, (), data), _FORMATTER.vformat(self.remedy, (), data)


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        """Join lists with commas and cut texts with a format such as `.19`; format other values like `str.format`."""
        if isinstance(value, list):
            return ", ".join(map(str, value))
        if format_spec.startswith(".") and format_spec[1:].isdigit():
            return str(value)[: int(format_spec[1:])]
        return str(format(value, format_spec))


_FORMATTER = _Formatter()
