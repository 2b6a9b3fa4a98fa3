"""Check the files of one split: which have no rows, and whether their labels have the same type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from onboard.data.problems import Finding, Problems
from onboard.data.rows import LabelledTable
from onboard.domain.counting import counted

_NAMED: Final = 3
_TYPES: Final = {str: "strings", bool: "booleans", float: "numbers", int: "integers"}


@dataclass(frozen=True, slots=True, eq=False)
class SplitFile:
    """A file of a split: its name in errors, its rows, and its problems."""

    file: str
    table: LabelledTable
    problems: Problems

    @property
    def is_empty(self) -> bool:
        """Whether it has no rows and no other problem."""
        return set(self.problems.counts) == {"empty_file"} and self.table.left_out is None

    @property
    def label_types(self) -> str:
        """Describe the types of its labels."""
        types = {type(label) for label in self.table.labels}
        if float in types:
            types.discard(int)  # all numbers become floats
        return " and ".join(words for kind, words in _TYPES.items() if kind in types)


def part_findings(split: str, parts: Sequence[SplitFile], read: Sequence[SplitFile]) -> list[Finding]:
    """Return warnings about the files of a split.

    Args:
        read: those that are not skipped.
    """
    findings = [finding for part in read if part.table.left_out for finding in part.table.left_out.findings(split)]
    empty = [part.file for part in parts if part not in read]
    if empty:
        message = f"{counted(len(empty), 'file')} of the {split} split without rows: skipped ({_named(empty)})."
        findings.append(Finding("empty_files", message, len(empty)))
    blank = sum(part.table.blank_rows for part in read)
    if blank:
        message = f"{counted(blank, 'row')} of the {split} split with nothing but separators: skipped."
        findings.append(Finding("blank_rows", message, blank))
    return findings + _mixed_types(split, read)


def _mixed_types(split: str, read: Sequence[SplitFile]) -> list[Finding]:
    """Warn if files have labels of different types, as these are different labels."""
    typed = sorted((part for part in read if part.label_types), key=lambda part: part.label_types)
    files = {types: [part.file for part in group] for types, group in groupby(typed, lambda part: part.label_types)}
    if len({types.replace("integers", "numbers") for types in files}) < 2:
        return []
    parts = "; ".join(f"{types} in {_named(names)}" for types, names in files.items())
    message = f"The labels of the {split} split are of several types: {parts}. They are learned as different labels."
    remedy = "Use one label type in all files."
    return [Finding("mixed_label_types", message, len(files), remedy)]


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return f"{', '.join(files[:_NAMED])}{more}"
