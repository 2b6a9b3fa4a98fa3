"""Several labels per row in files: a list, text with separators, or one column of 0 and 1 per label."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from onboard.data.fields import BOOKKEEPING
from onboard.data.formats import Reader, RowError
from onboard.data.problems import preview
from onboard.domain.dataset import Label

SEPARATORS: Final = ("|", ";", ",")  # the first that occurs in any cell of the file separates all cells
FEWEST_INDICATORS: Final = 2  # minimum number of columns of 0 and 1 to treat them as labels
_SAMPLE_ROWS: Final = 1_000
_OFF_ON: Final[Mapping[str, bool]] = {"0": False, "false": False, "0.0": False, "1": True, "true": True, "1.0": True}

Check = Callable[[object], Label]


def list_in(value: object, *, typed: bool) -> list[object] | None:
    """Return the list in a cell, or a list as JSON if all cells are texts; None for any other cell."""
    if isinstance(value, list | tuple):
        return list(value)
    if typed or not isinstance(value, str) or not value.strip().startswith("["):
        return None
    try:
        parsed = json.loads(value)
    except ValueError:
        return None
    return parsed if isinstance(parsed, list) else None


def checked_labels(values: Iterable[object], check: Check) -> tuple[Label, ...]:
    """Return the labels of one row, including repetitions. Raises RowError: one is empty or invalid."""
    return tuple(_checked(value, place, check) for place, value in enumerate(values, 1))


def _checked(value: object, place: int, check: Check) -> Label:
    try:
        return check(value)
    except RowError as error:
        message = f"label {place} of the list: {error.message}"
        remedy = "Delete it from the list." if error.code == "missing_label" else error.remedy
        raise RowError(error.code, message, remedy) from error


def separator_of(cells: Iterable[str]) -> str | None:
    """Return the separator of labels in the cells of a column; None if every cell has at most one label."""
    present = {separator for cell in cells for separator in SEPARATORS if separator in cell}
    return next((separator for separator in SEPARATORS if separator in present), None)


def parted(cell: str, separator: str | None) -> list[object]:
    """Return the labels in a cell; none for an empty one."""
    listed = list_in(cell, typed=False)
    if listed is not None:
        return listed
    if not cell.strip():
        return []
    return [cell] if separator is None else [*cell.split(separator)]


def indicators_of(reader: Reader, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with only 0 and 1, if there are several, judged by the first rows.

    Args:
        reader: reader of the file; its rows are read from the beginning.
    """
    possible = [name for name in reader.columns() if name not in texts and name.casefold() not in BOOKKEEPING]
    if len(possible) < FEWEST_INDICATORS:
        return ()
    seen = False
    for row in islice(reader.rows(possible), _SAMPLE_ROWS):
        seen = True
        possible = [name for name in possible if _switched(row.values.get(name)) is not None]
        if len(possible) < FEWEST_INDICATORS:
            return ()
    return tuple(possible) if seen else ()


def indicated(values: Mapping[str, object], indicators: Sequence[str]) -> tuple[Label, ...]:
    """Return the columns with 1 in a row. Raises RowError: one contains neither 0 nor 1."""
    on = {name: _switched(values.get(name)) for name in indicators}
    wrong = next((name for name, switched in on.items() if switched is None), None)
    if wrong is not None:
        shown = "nothing" if values.get(wrong) in (None, "") else preview(str(values.get(wrong)))
        message = f"the column {preview(wrong)!r} holds {shown}, not 0 or 1"
        raise RowError("label_type", message, "Write 0 or 1 in every label column.")
    return tuple(name for name, switched in on.items() if switched)


def _switched(value: object) -> bool | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return _OFF_ON.get(str(value).strip().casefold()) if isinstance(value, str | bool | int | float) else None
