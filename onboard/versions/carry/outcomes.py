"""The outcomes of carrying tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onboard.contract.carrying import CarriedTask, CarriedTasks
from onboard.contract.evaluations import PairedComparison
from onboard.contract.guard import GuardedTask
from onboard.domain.task import EmbeddingVersion


@dataclass(frozen=True)
class CarryOutcome:
    """The outcome for one task.

    Args:
        present: the version that `latest` named.
        head: the hypernetwork version to carry it to.
        version: number of the version that `latest` names now; None if nothing was changed.
        metrics: of the version under the head; None if not measured.
        verdict: the guard's verdict; None if there is none.
        comparison: under the head with `present`, on its held-out and test rows; None without any.
    """

    present: EmbeddingVersion
    head: int
    cleared: bool
    reason: str
    version: int | None = None
    metrics: dict[str, Any] | None = None
    verdict: GuardedTask | None = None
    comparison: PairedComparison | None = None

    def to_document(self) -> CarriedTask:
        """Return the outcome as a document."""
        return CarriedTask(
            task=self.present.task,
            earlier_version=self.present.version,
            version=self.version,
            hypernetwork_from=self.present.hypernetwork_version,
            hypernetwork_version=self.head,
            reason=self.reason,
            metrics=self.metrics,
            guard=self.verdict,
            comparison=self.comparison,
        )


@dataclass(frozen=True)
class Carried:
    """The outcomes for several tasks.

    Args:
        outcomes: of those that were not at the head, by name.
        next: name of the last of them if more follow; None at the end.
    """

    outcomes: tuple[CarryOutcome, ...]
    dry_run: bool
    next: str | None = None

    def to_document(self) -> CarriedTasks:
        """Return the document of `tasks carry --json`."""
        cleared, refused = (
            tuple(outcome.to_document() for outcome in self.outcomes if outcome.cleared == is_cleared)
            for is_cleared in (True, False)
        )
        return CarriedTasks(dry_run=self.dry_run, carried=cleared, refused=refused)
