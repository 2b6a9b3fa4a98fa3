"""The Markdown of the pages: tables, verdicts, and how things are counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.heldout.plan import ArmRun
from onboard.bases import find_base
from onboard.domain.counting import counted

NONE: Final = "–"
ANOTHER_BASE: Final = "These figures are of another base than the `mini` that ships"
VERDICTS: Final = "what | found | verdict"  # head of a table of targets


@dataclass(frozen=True)
class Facts:
    """How a page was made.

    Args:
        command: that makes it again.
        base: its name.
        draws: of the rows.
        test_rows: most of a task.
        missing: runs of the plan that were not made.
    """

    command: str
    base: str
    draws: int
    test_rows: int
    missing: Sequence[ArmRun]


def table_row(*cells: object) -> str:
    """One row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(head: str | Sequence[object], rows: Iterable[Iterable[object]] = (), rule: str = "---") -> list[str]:
    """The lines of a table; a head may be written as "place | seed | jobs"."""
    cells = head.split(" | ") if isinstance(head, str) else head
    return [table_row(*cells), f"|{f'{rule}|' * len(cells)}", *(table_row(*row) for row in rows)]


def made_on(document: Mapping[str, Any]) -> str:
    """The command of a document, and the machine."""
    machine = document["machine"]
    gpu = f"{machine['gpu']}, beside " if "gpu" in machine else ""
    return f"`{document['command']}` on {gpu}{machine['cores']} cores of {machine['processor']}"


def of_another_base(digest: str) -> list[str]:
    """The note of a page about figures that were not measured on the `mini` that ships: empty if they were.

    Args:
        digest: of the base that they were measured on.
    """
    if digest == find_base("mini").digest:
        return []
    return [f"**{ANOTHER_BASE} (`{digest[:19]}`): on this one they may be others.**", ""]


def met(met: bool) -> str:
    """A verdict."""
    return "met" if met else "**not met**"


def unmeasured(what: str, of: str = "") -> str:
    """A row of verdicts without one; `of`: how much of it is there."""
    return table_row(what, NONE, f"not measured yet{f' ({of})' if of else ''}")


def joined(counts: Iterable[object]) -> str:
    """ "16 and 100"."""
    return " and ".join(map(str, counts))


def listed(settings: Mapping[str, Any]) -> str:
    """ "steps 40, batch 8"."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def were(count: int, what: str) -> str:
    """ "1 run of the plan was", "2 runs of the plan were"."""
    return f"{counted(count, what)} of the plan {'was' if count == 1 else 'were'}"
