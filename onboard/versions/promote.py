"""Use case: move an alias such as `latest` manually: forwards, only if the version is better, and back.

A manual move of `latest` to a significantly worse version is refused, too. Rolling back is always possible: see
docs/how-to/compare-and-roll-back.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onboard.contract.evaluations import Evidence
from onboard.domain.names import LATEST, Reference, require_alias
from onboard.domain.task import AliasMove, EmbeddingVersion
from onboard.errors import NotBetterError, NotFoundError
from onboard.hypernetworks.files import Manifests
from onboard.registry.aliases import AliasRepository, require_unmoved
from onboard.registry.audit import actor, record
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.versions.as_before import names_as_before
from onboard.versions.compare import compare_versions
from onboard.versions.side_by_side import SideBySide

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.domain.task import AliasNames


def promote(
    services: Services,
    reference: str,
    alias: str,
    *,
    if_better: bool = False,
    as_before: bool = False,
    expected: int | None = None,
    manifests: Manifests | None = None,
    because: str = "",
) -> AliasMove:
    """Point an alias at a version and record the move. If it already points there, nothing is recorded.

    Args:
        reference: TASK@vN, or another alias of the task.
        alias: the name to move; created if it is new.
        if_better: only if `compare` finds the version significantly better than the alias's current version. For a new
            alias, it is compared with `latest`; if that is the same version or missing, with the most frequent answer.
        as_before: keep the previous label names for users of the alias, if labels were renamed since.
        expected: the version that the alias must currently point to; 0 for none.
        manifests: manifests of bases that were already read.
        because: the reason, for the history.

    Raises:
        InputError: the reference or the alias is invalid.
        NotFoundError: the version does not exist.
        NotBetterError: it is not better although `if_better` is set, or `alias` is latest and it is significantly
            worse.
        ConflictError: as in `names_as_before`.
        PreconditionFailedError: the alias does not point to `expected`, or moved during the comparison.
        DamagedError: bytes needed for the comparison are missing or damaged.
        UnavailableError: this process is comparing other versions.
    """
    require_alias(alias)
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    expected, good = _judged(services, version, Reference(version.task, alias), expected, if_better, manifests)
    with services.database.write() as session:
        names = _names(session, version, alias) if as_before else None
        names_now = AliasRepository(session).names(version.task, alias)
        shown = ["keeps the previous label names"] if names else []
        note = ", ".join(filter(None, (good, *shown, because)))
        moved = AliasRepository(session).move(
            version.task, alias, version.version, expected=expected, actor=actor(),
            reason=f"promoted: {note}" if note else "promoted", names=names,
        )  # fmt: skip
        renamed = [*map(list, names or ())] != [*map(list, names_now or ())]
        return _recorded(session, "alias.promote", moved, renamed=renamed)


def _names(session: Session, version: EmbeddingVersion, alias: str) -> AliasNames | None:
    """Return the alias's names for the labels of the version."""
    aliases = AliasRepository(session)
    number = aliases.find(version.task, alias)
    current = None if number is None else VersionRepository(session).living(version.task, number)
    return names_as_before(session, version, current, aliases.names(version.task, alias))


def _judged(
    services: Services,
    version: EmbeddingVersion,
    alias: Reference,
    expected: int | None,
    better: bool,
    manifests: Manifests | None,
) -> tuple[int | None, str]:
    """Return the version that may be replaced, and a note for the history.

    Aliases other than `latest` are not judged.
    """
    if not better and alias.alias != LATEST:
        return expected, ""
    replaced, evidence = _require_good(services, version, alias, expected, better, manifests)
    shown = "better by cross-validated answers" if evidence == "cross-validated" else "better"
    return replaced, shown if better else ""


def rollback(services: Services, task: str, alias: str, *, expected: int | None = None, because: str = "") -> AliasMove:
    """Point an alias at its previous version. See `AliasRepository.rollback` for errors."""
    with services.database.write() as session:
        moved = AliasRepository(session).rollback(task, alias, expected=expected, actor=actor(), because=because)
        return _recorded(session, "alias.rollback", moved)


def meaning(database: Database, task: str, alias: str) -> int | None:
    """Return the version of an alias; None if the alias does not exist. Raises NotFoundError (the task)."""
    with database.read() as session:
        TaskRepository(session).get(task)
        return AliasRepository(session).find(task, alias)


def alias_history(database: Database, task: str, alias: str, most: int) -> tuple[int, Sequence[AliasMove]]:
    """Return the current version of an alias, and its last moves, newest first.

    Raises:
        NotFoundError: the task or the alias does not exist.
    """
    with database.read() as session:
        TaskRepository(session).get(task)
        version = AliasRepository(session).find(task, alias)
        history = AliasRepository(session).history(task, alias, most)
    if version is None:
        raise NotFoundError("unknown-alias", task=task, alias=alias)
    return version, history


def _recorded(session: Session, action: str, move: AliasMove, *, renamed: bool = False) -> AliasMove:
    if move.previous != move.version or renamed:
        record(session, action, f"{move.task}@{move.alias}", version=move.version, previous=move.previous)
    return move


def _require_good(
    services: Services,
    version: EmbeddingVersion,
    alias: Reference,
    expected: int | None,
    better: bool,
    manifests: Manifests | None,
) -> tuple[int, Evidence | None]:
    """Return the version that was compared, the only one that may be replaced (0: the alias is new), and the evidence.

    Cross-validated answers can show that a version is better, but never prevent a move of `latest`.
    """
    with services.database.read() as session:
        current, latest = _meant(session, alias), _meant(session, Reference(alias.task, LATEST))
    require_unmoved(
        alias.task, str(alias.alias), current.version if current else None, expected
    )  # before the slow comparison
    if current is not None and current.version == version.version:
        return current.version, None  # nothing moves
    evidence: Evidence | None = None
    rival = current or (latest if better else None)
    if rival is not None and rival.version != version.version:
        comparison = compare_versions(services, rival, version, manifests)
        evidence = comparison.evidence
        worse = comparison.worse and evidence != "cross-validated"
        if worse or (better and not comparison.better):
            raise _refused(version, alias if current else Reference(alias.task, LATEST), rival, comparison)
    elif better and not _beats_the_commonest(version):
        raise _no_better_than_the_commonest(version, alias)
    return (current.version if current else 0), evidence


def _meant(session: Session, reference: Reference) -> EmbeddingVersion | None:
    try:
        return VersionRepository(session).resolve(reference)
    except NotFoundError:
        return None


def _beats_the_commonest(version: EmbeddingVersion) -> bool:
    """Return whether it was measured and is better than always giving the most frequent answer."""
    metrics = (metric for split in version.metrics.values() for metric in (split or {}).values())
    return not version.weak and any(metric["low"] is not None and metric["n"] > 1 for metric in metrics)


def _no_better_than_the_commonest(version: EmbeddingVersion, alias: Reference) -> NotBetterError:
    return NotBetterError(
        "not-better-than-majority", comparison=None, alias=alias, version=version.reference, task=alias.task
    )


def _how_to_compare(present: EmbeddingVersion, version: EmbeddingVersion, comparison: SideBySide) -> str:
    command = f"onboard compare {present.reference} {version.reference}"
    if comparison.evidence in ("held-out", "file"):
        return command
    return f"Compare them on labeled rows that neither has seen: {command} --test FILE"


def _refused(
    version: EmbeddingVersion, alias: Reference, present: EmbeddingVersion, comparison: SideBySide
) -> NotBetterError:
    verdict = "significantly worse" if comparison.worse else "not better"
    if comparison.measured is None:
        verdict = "not significantly better"
    back = f"; or go back: onboard rollback {alias.task} --alias {alias.alias}" if alias.alias == LATEST else ""
    return NotBetterError(
        "not-better-than-present",
        comparison=comparison.to_document().to_json(),
        version=version.reference,
        verdict=verdict,
        alias=alias,
        present=present.version,
        reason=comparison.reason,
        how=_how_to_compare(present, version, comparison),
        back=back,
    )
