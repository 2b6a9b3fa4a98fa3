"""What became of the tasks that were to be carried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onboard.contract.carrying import CarriedTask, CarriedTasks
from onboard.contract.evaluations import PairedComparison
from onboard.contract.guard import GuardedTask
from onboard.domain.task import EmbeddingVersion


@dataclass(frozen=True)
class CarryOutcome:
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
    verdict: GuardedTask | None = None
    comparison: PairedComparison | None = None

    def to_document(self) -> CarriedTask:
        """The outcome as people see it."""
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
    """What became of several tasks.

    Args:
        outcomes: of those that were not at the head, by name.
        dry_run: whether nothing was changed, whatever was cleared.
        next: name of the last of them where others follow; None at the end.
    """

    outcomes: tuple[CarryOutcome, ...]
    dry_run: bool
    next: str | None = None

    def to_document(self) -> CarriedTasks:
        """What `tasks carry --json` prints."""
        cleared, refused = (
            tuple(outcome.to_document() for outcome in self.outcomes if outcome.cleared == is_cleared)
            for is_cleared in (True, False)
        )
        return CarriedTasks(dry_run=self.dry_run, carried=cleared, refused=refused)
