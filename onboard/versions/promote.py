"""Use case: which version a name such as `latest` means, moved by hand: forwards, only if it is better, and back.

`latest` keeps its promise by hand too: it does not move to a version that is significantly worse. Going back to what it
meant before is always possible: see docs/how-to/compare-and-roll-back.md.
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
    """Let an alias mean this version; every move is kept. One that it means already is no move.

    Args:
        reference: TASK@vN, or another alias of the task.
        alias: the name to move; made when it is new.
        if_better: only if `compare` says that it is significantly better than what the alias means now. Of a new alias:
            than what `latest` means; and where that is this version, or nothing, than the commonest answer.
        as_before: answer those who ask the alias with the labels that they know, where labels were renamed since.
        expected: the version that the alias must mean at present; 0 for none.
        manifests: of the bases that were read already.
        because: why, for the history.

    Raises:
        InputError: no reference, or no name for an alias.
        NotFoundError: no such version.
        NotBetterError: it is not better though that was asked for, or it is significantly worse and `alias` is latest.
        ConflictError: as of `names_as_before`.
        PreconditionFailedError: the alias means another version than `expected`, or than what was compared.
        DamagedError: bytes that would have to be compared are gone or damaged.
        UnavailableError: this process is comparing others.
    """
    require_alias(alias)
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    expected, good = _judged(services, version, Reference(version.task, alias), expected, if_better, manifests)
    with services.database.write() as session:
        names = _names(session, version, alias) if as_before else None
        called = AliasRepository(session).names(version.task, alias)
        shown = ["keeps the previous label names"] if names else []
        said = ", ".join(filter(None, (good, *shown, because)))
        moved = AliasRepository(session).move(
            version.task, alias, version.version, expected=expected, actor=actor(),
            reason=f"promoted: {said}" if said else "promoted", names=names,
        )  # fmt: skip
        renamed = [*map(list, names or ())] != [*map(list, called or ())]
        return _recorded(session, "alias.promote", moved, renamed=renamed)


def _names(session: Session, version: EmbeddingVersion, alias: str) -> AliasNames | None:
    """What the alias is to call the labels of the version."""
    aliases = AliasRepository(session)
    number = aliases.find(version.task, alias)
    present = None if number is None else VersionRepository(session).living(version.task, number)
    return names_as_before(session, version, present, aliases.names(version.task, alias))


def _judged(
    services: Services,
    version: EmbeddingVersion,
    alias: Reference,
    expected: int | None,
    better: bool,
    manifests: Manifests | None,
) -> tuple[int | None, str]:
    """The version that may be replaced, and what the history says of the new one; names but `latest` are free."""
    if not better and alias.alias != LATEST:
        return expected, ""
    replaced, evidence = _require_good(services, version, alias, expected, better, manifests)
    shown = "better by cross-validated answers" if evidence == "cross-validated" else "better"
    return replaced, shown if better else ""


def rollback(services: Services, task: str, alias: str, *, expected: int | None = None, because: str = "") -> AliasMove:
    """Let an alias mean the version that it meant before. See `AliasRepository.rollback` for what it raises."""
    with services.database.write() as session:
        moved = AliasRepository(session).rollback(task, alias, expected=expected, actor=actor(), because=because)
        return _recorded(session, "alias.rollback", moved)


def meaning(database: Database, task: str, alias: str) -> int | None:
    """The version that the alias means just now; None where there is no such alias. Raises NotFoundError (the task)."""
    with database.read() as session:
        TaskRepository(session).get(task)
        return AliasRepository(session).find(task, alias)


def alias_history(database: Database, task: str, alias: str, most: int) -> tuple[int, Sequence[AliasMove]]:
    """The version that the alias means just now, and its last moves, newest first.

    Raises:
        NotFoundError: there is no such task, or no such alias of it.
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
    """The version that it was compared with, the only one that may be replaced (0: the alias is new), and by what.

    Cross-validated answers may show that a version is better, but do not forbid to move `latest`.
    """
    with services.database.read() as session:
        present, latest = _meant(session, alias), _meant(session, Reference(alias.task, LATEST))
    require_unmoved(
        alias.task, str(alias.alias), present.version if present else None, expected
    )  # before it takes long
    if present is not None and present.version == version.version:
        return present.version, None  # no move
    evidence: Evidence | None = None
    rival = present or (latest if better else None)
    if rival is not None and rival.version != version.version:
        comparison = compare_versions(services, rival, version, manifests)
        evidence = comparison.evidence
        worse = comparison.worse and evidence != "cross-validated"
        if worse or (better and not comparison.better):
            raise _refused(version, alias if present else Reference(alias.task, LATEST), rival, comparison)
    elif better and not _beats_the_commonest(version):
        raise _no_better_than_the_commonest(version, alias)
    return (present.version if present else 0), evidence


def _meant(session: Session, reference: Reference) -> EmbeddingVersion | None:
    try:
        return VersionRepository(session).resolve(reference)
    except NotFoundError:
        return None


def _beats_the_commonest(version: EmbeddingVersion) -> bool:
    """Whether it was measured, and shown to be better than always giving the commonest answer."""
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
    what = "significantly worse" if comparison.worse else "not better"
    if comparison.measured is None:
        what = "not significantly better"
    back = f"; or go back: onboard rollback {alias.task} --alias {alias.alias}" if alias.alias == LATEST else ""
    return NotBetterError(
        "not-better-than-present",
        comparison=comparison.to_document().to_json(),
        version=version.reference,
        verdict=what,
        alias=alias,
        present=present.version,
        reason=comparison.reason,
        how=_how_to_compare(present, version, comparison),
        back=back,
    )
