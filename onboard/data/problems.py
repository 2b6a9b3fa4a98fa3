"""Problems, which forbid a dataset, and findings, which are warnings; both are collected and reported together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from onboard.contract.checks import DatasetWarning
from onboard.data.limits import MAX_EXAMPLES, MAX_PROBLEMS_LISTED
from onboard.errors import DatasetError

_TOLD_IN_MESSAGE = 3
_PREVIEW_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that forbids a dataset.

    Args:
        code: short stable name, such as `empty_text`.
        message: description that follows "row 3, field text: ", without a full stop.
        row: number of the row from 1, as in the file (a CSV header is not a row); None for the whole file.
        line: line of a CSV or TSV file on which the row starts.
    """

    code: str
    message: str
    file: str
    row: int | None = None
    line: int | None = None
    field: str | None = None
    remedy: str = ""

    @property
    def type(self) -> str:
        """The code as the type of an error: `empty-text`."""
        return self.code.replace("_", "-")

    def to_json(self) -> dict[str, Any]:
        """Return the problem as a JSON-compatible document."""
        return {"type": self.type, **asdict(self)}

    def __str__(self) -> str:
        where = [] if self.row is None else [f"row {self.row}"]
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.field is not None:
            where.append(f"field {self.field}")
        return f"{', '.join(where)}: {self.message}" if where else self.message


class Problems:
    """Collects problems: all are counted, the first hundred are kept with their row."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.counts: Counter[str] = Counter()

    def add(self, problem: Problem) -> None:
        """Count the problem, and keep it if there is room."""
        self.counts[problem.code] += 1
        if len(self.listed) < MAX_PROBLEMS_LISTED:
            self.listed.append(problem)

    def merge(self, others: Problems) -> None:
        """Add the problems of another collection."""
        self.counts.update(others.counts)
        self.listed += others.listed[: MAX_PROBLEMS_LISTED - len(self.listed)]

    @property
    def count(self) -> int:
        """Number of problems, listed or not."""
        return sum(self.counts.values())

    def any_of(self, codes: Iterable[str]) -> bool:
        """Return whether a problem with one of these codes was added."""
        return any(code in self.counts for code in codes)

    def raise_if_any(self) -> None:
        """Raise one DatasetError with all problems, if there are any."""
        if not self.count:
            return
        remedies = list(dict.fromkeys(problem.remedy for problem in self.listed if problem.remedy))
        facts = {
            "problems": [problem.to_json() for problem in self.listed],
            "problem_count": self.count,
            "problem_counts": dict(self.counts),
        }
        type_ = self.listed[0].type if len(self.counts) == 1 else "several-problems"
        raise DatasetError.reported(type_, self._sentence(), " ".join(remedies[:_TOLD_IN_MESSAGE]), facts)

    def _sentence(self) -> str:
        files = list(dict.fromkeys(problem.file for problem in self.listed))
        lines = [
            f"{problem.file}: {problem}" if len(files) > 1 else str(problem)
            for problem in self.listed[:_TOLD_IN_MESSAGE]
        ]
        if self.count > len(lines):
            lines.append(f"and {self.count - len(lines):,} more")
        if self.count == 1 and self.listed[0].row is None and self.listed[0].field is None:
            return f"{files[0]} {lines[0]}."
        number = "" if self.count == 1 else f"{self.count:,} problems: "
        prefix = number if len(files) > 1 else f"{files[0]}: {number}"
        return f"{prefix}{'; '.join(lines)}."


@dataclass(frozen=True, slots=True)
class Finding:
    """A warning about a dataset that can be used.

    Args:
        code: short stable name, such as `exact_duplicates`.
        message: the problem, and how the rows were changed.
        count: number of rows or labels concerned.
        examples: a few of them, JSON-compatible.
    """

    code: str
    message: str
    count: int
    remedy: str = ""
    examples: tuple[dict[str, Any], ...] = ()

    def to_document(self) -> DatasetWarning:
        """Return the warning as reports and `check --json` show it, with the first few examples."""
        return DatasetWarning(
            code=self.code, type=self.code.replace("_", "-"), message=self.message, count=self.count,
            remedy=self.remedy, examples=self.examples[:MAX_EXAMPLES],
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the warning as JSON."""
        return self.to_document().to_json()


def preview(text: str) -> str:
    """Return the text's beginning, printable: without control characters and lone surrogates."""
    head = text[:_PREVIEW_CHARACTERS].encode("utf-8", "backslashreplace").decode("utf-8")
    shown = "".join(character if character.isprintable() else " " for character in head)
    return f"{shown}…" if len(text) > _PREVIEW_CHARACTERS else shown
