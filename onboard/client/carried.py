"""What became of tasks that were to go on under the present hypernetwork, as the client returns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from onboard.client.compared import PairedComparison
from onboard.client.document import Document

if TYPE_CHECKING:
    from onboard.domain.report import Splits


@dataclass(frozen=True, slots=True)
class GuardedTask:
    """What the guard found: the increase of the task's log-loss in nats, with its one-sided bounds.

    Args:
        verdict: pass, fail, or not enough evidence.
        evidence: held-out rows, or divergence: of answers on other texts.
        rows: that were looked at; flipped: of them with another answer.
        detectable: the smallest increase that would have been noticed.
        trouble: why it could not be judged; None where it was.
    """

    task: str
    verdict: str
    evidence: str | None
    increase: float | None
    low: float | None
    high: float | None
    rows: int
    flipped: int | None
    detectable: float | None
    trouble: str | None

    @classmethod
    def of(cls, document: Document) -> GuardedTask:
        """Read a verdict. Raises AnswerError."""
        return cls(
            document.read("task", str), document.read("verdict", str), document.read_or_none("evidence", str),
            document.read_or_none("increase", float), document.read_or_none("low", float),
            document.read_or_none("high", float), document.read("rows", int), document.read_or_none("flipped", int),
            document.read_or_none("detectable", float), document.read_or_none("trouble", str),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CarriedTask:
    """What became of one task.

    Args:
        earlier_version: what `latest` named; version: what it names now, None where nothing was changed.
        hypernetwork_from: what it was pinned to; hypernetwork_version: the head.
        reason: why, or why not.
        metrics: by split, under the head; None where they were not measured.
        guard: None where it could not be asked.
        comparison: under the head against what `latest` named; None without rows.
    """

    task: str
    earlier_version: int
    version: int | None
    hypernetwork_from: int
    hypernetwork_version: int
    reason: str
    metrics: Splits | None
    guard: GuardedTask | None
    comparison: PairedComparison | None

    @classmethod
    def of(cls, document: Document) -> CarriedTask:
        """Read what became of a task. Raises AnswerError."""
        guard, paired = document.part_or_none("guard"), document.part_or_none("comparison")
        return cls(
            task=document.read("task", str),
            earlier_version=document.read("from", int),
            version=document.read_or_none("version", int),
            hypernetwork_from=document.read("hypernetwork_from", int),
            hypernetwork_version=document.read("hypernetwork_version", int),
            reason=document.read("reason", str),
            metrics=cast("Splits | None", document.part_or_none("metrics")),
            guard=None if guard is None else GuardedTask.of(guard),
            comparison=None if paired is None else PairedComparison.of(paired),
        )


@dataclass(frozen=True, slots=True)
class CarriedTasks:
    """What became of the tasks that were not at the head.

    Args:
        dry_run: whether nothing was changed, whatever was cleared.
        refused: what the guard did not clear; they stay as they are.
        document: everything, as `onboard tasks carry --json` prints it.
    """

    dry_run: bool
    carried: tuple[CarriedTask, ...]
    refused: tuple[CarriedTask, ...]
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, pages: Sequence[Document], dry_run: bool) -> CarriedTasks:
        """Read the answers to one request after the other, each about a few tasks. Raises AnswerError."""
        carried, refused = ([part for page in pages for part in page.parts(key)] for key in ("carried", "refused"))
        return cls(
            dry_run, tuple(map(CarriedTask.of, carried)), tuple(map(CarriedTask.of, refused)),
            {"dry_run": dry_run, "carried": carried, "refused": refused},
        )  # fmt: skip
