"""Dataset cards: check the size of the YAML front matter of a README before it is parsed.

A YAML alias repeats its anchor. Ten lines that reference each other ten times each expand to ten billion values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from onboard.errors import InputError, TooLargeError

MAX_CARD_BYTES: Final = 1 << 20
_MAX_VALUES: Final = 200_000  # of the card, with expanded aliases
_MAX_DEPTH: Final = 50


def require_bounded_card(card: Path, shown: str) -> None:
    """Check that a card can be parsed with little memory and time.

    Args:
        card: the README.md of a dataset.

    Raises:
        TooLargeError: it has too many bytes or expands to too many values.
        InputError: it cannot be read or is nested too deeply.
    """
    size = card.stat().st_size
    if size > MAX_CARD_BYTES:
        raise card_too_large(size, shown)
    front = _front(card.read_bytes())
    values = _values(front, shown)
    if values > _MAX_VALUES:
        raise TooLargeError("card-too-many-values", source=shown, limit=_MAX_VALUES)


def card_too_large(size: int, shown: str) -> TooLargeError:
    """Return the error for a card that is too large."""
    return TooLargeError("card-too-large", source=shown, limit=MAX_CARD_BYTES, size=size)


def _front(content: bytes) -> str:
    """Return the text between the first two lines of dashes; empty without a card."""
    lines = content.decode("utf-8-sig", "replace").split("\n")
    if lines[0].rstrip() != "---":
        return ""
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), len(lines))
    return "\n".join(lines[1:end])


def _values(front: str, shown: str) -> int:
    """Count the values with expanded aliases, from the parser's events."""
    import yaml

    sizes: dict[str, int] = {}  # of anchors
    inside: list[tuple[str | None, int]] = []  # anchor and number of values so far, of each open collection
    total = 0
    try:
        for event in yaml.parse(front, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                inside.append((event.anchor, 1))
                _require_shallow(inside, shown)
                continue
            anchor, count = _closed(event, sizes, inside)
            if anchor is not None:
                sizes[anchor] = count
            if inside:
                inside[-1] = (inside[-1][0], inside[-1][1] + count)
            total = max(total, count)
            if total > _MAX_VALUES:
                break
    except yaml.YAMLError:
        return 0  # the parser reports the error later
    return total


def _closed(event: Any, sizes: dict[str, int], inside: list[tuple[str | None, int]]) -> tuple[str | None, int]:
    """Return the anchor of the value that an event ends, and its number of values."""
    import yaml

    if isinstance(event, yaml.CollectionEndEvent):
        return inside.pop()
    if isinstance(event, yaml.AliasEvent):
        return None, sizes.get(event.anchor, _MAX_VALUES + 1)  # a collection that contains itself
    return getattr(event, "anchor", None), int(isinstance(event, yaml.ScalarEvent))


def _require_shallow(inside: list[tuple[str | None, int]], shown: str) -> None:
    if len(inside) > _MAX_DEPTH:
        raise InputError("card-too-deep", source=shown, limit=_MAX_DEPTH)
