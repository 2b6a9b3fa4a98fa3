"""What became of the tasks that were to be carried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onboard.domain.task import EmbeddingVersion

if TYPE_CHECKING:
    from onboard.evaluate.paired import Comparison
    from onboard.guard import TaskVerdict


@dataclass(frozen=True)
class Outcome:
    """What became of one task.

    Args:
        present: what `latest` named.
        head: the hypernetwork version to carry it to.
        cleared: whether nothing speaks against it.
        reason: why, or why not.
        version: number of the version that `latest` names now; None where nothing was changed.
        metrics: of the version under the head; None where they were not measured.
        verdict: of the guard; None where it could not be asked.
        comparison: under the head against `present`, on its held-out and test rows; None without any.
    """

    present: EmbeddingVersion
    head: int
    cleared: bool
    reason: str
    version: int | None = None
    metrics: dict[str, Any] | None = None
    verdict: TaskVerdict | None = None
    comparison: Comparison | None = None

    def to_json(self) -> dict[str, Any]:
        """The outcome as a JSON document."""
        return {
            "task": self.present.task,
            "from": self.present.version,
            "version": self.version,
            "hypernetwork_from": self.present.hypernetwork_version,
            "hypernetwork_version": self.head,
            "reason": self.reason,
            "metrics": self.metrics,
            "guard": self.verdict.to_json() if self.verdict else None,
            "comparison": self.comparison.to_json() if self.comparison else None,
        }


@dataclass(frozen=True)
class Carried:
    """What became of several tasks.

    Args:
        outcomes: of those that were not at the head, by name.
        dry_run: whether nothing was changed, whatever was cleared.
        next: name of the last of them where others follow; None at the end.
    """

    outcomes: tuple[Outcome, ...]
    dry_run: bool
    next: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The document of `tasks carry --json`."""
        return {
            "dry_run": self.dry_run,
            "carried": [outcome.to_json() for outcome in self.outcomes if outcome.cleared],
            "refused": [outcome.to_json() for outcome in self.outcomes if not outcome.cleared],
        }
