"""Use case: move an alias such as `latest` manually: forwards, only if the version is better, and back.

A manual move of `latest` to a significantly worse version is refused, too. Rolling back is always possible: see
docs/how-to/compare-and-roll-back.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onboard.contract.evaluations import Evidence
from onboard.domain.canary import Canary, require_share
from onboard.domain.names import LATEST, Reference, require_alias
from onboard.domain.task import AliasMove, EmbeddingVersion
from onboard.errors import InputError, NotBetterError, NotFoundError
from onboard.hypernetworks.files import Manifests
from onboard.registry.aliases import AliasRepository, Expected
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
    share: float | None = None,
    expected: Expected | None = None,
    manifests: Manifests | None = None,
    because: str = "",
) -> AliasMove:
    """Point an alias at a version and record the move. If it already points there, nothing is recorded.

    A move ends the alias's canary. With `share` the version becomes the canary instead, and the alias does not move.

    Args:
        reference: TASK@vN, or another alias of the task.
        alias: the name to move; created if it is new.
        if_better: only if `compare` finds the version significantly better than the alias's current version. For a new
            alias, it is compared with `latest`; if that is the same version or missing, with the most frequent answer.
        as_before: keep the previous label names for users of the alias, if labels were renamed since.
        share: fraction of the alias's texts that the version answers as the canary, below 1; 0 ends it.
        expected: the version that the alias must currently point to, or its tag; 0 for none.
        because: the reason, for the history.

    Raises:
        InputError: the reference or the alias is invalid.
        NotFoundError: the version does not exist.
        NotBetterError: it is not better although `if_better` is set, or `alias` is latest and it is significantly
            worse.
        ConflictError: as in `names_as_before`, and for a canary as in `AliasRepository.start_canary` and `end_canary`.
        PreconditionFailedError: the alias does not point to `expected`, or moved during the comparison.
        DamagedError: bytes needed for the comparison are missing or damaged.
        UnavailableError: this process is comparing other versions.
    """
    require_alias(alias)
    if share is not None:
        require_share(share)
        if as_before:
            raise InputError("share-with-names", field="as_before")
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    if share == 0:
        return _ended(services, version, alias, expected, because)
    if share is not None:  # what cannot be a canary is refused before a slow comparison
        with services.database.read() as session:
            AliasRepository(session).require_fit_for_canary(version.task, alias, version.version)
    expected, good = _judged(services, version, Reference(version.task, alias), expected, if_better, manifests)
    with services.database.write() as session:
        if share is not None:
            return _shared(session, version, alias, share, expected, ", ".join(filter(None, (good, because))))
        canary = AliasRepository(session).canary(version.task, alias)
        names = _names(session, version, alias) if as_before else None
        names_now = AliasRepository(session).names(version.task, alias)
        shown = ["keeps the previous label names"] if names else []
        note = ", ".join(filter(None, (good, *shown, because)))
        moved = AliasRepository(session).move(
            version.task, alias, version.version, expected=expected, actor=actor(),
            reason=f"promoted: {note}" if note else "promoted", names=names,
        )  # fmt: skip
        renamed = [*map(list, names or ())] != [*map(list, names_now or ())]
        return _recorded(session, "alias.promote", moved, renamed=renamed, ended=canary)


def _shared(
    session: Session, version: EmbeddingVersion, alias: str, share: float, expected: Expected | None, note: str
) -> AliasMove:
    """Let the version answer a share of the alias's texts."""
    aliases = AliasRepository(session)
    before = aliases.canary(version.task, alias)
    shared = aliases.start_canary(
        version.task, alias, version.version, share, expected=expected, actor=actor(),
        reason=f"canary: {note}" if note else "canary",
    )  # fmt: skip
    if before != Canary(version.version, share):
        facts = {"version": shared.version, "canary": version.version, "share": share}
        record(session, "alias.canary", f"{version.task}@{alias}", **facts)
    return shared


def _ended(
    services: Services, version: EmbeddingVersion, alias: str, expected: Expected | None, because: str
) -> AliasMove:
    """End the canary that is this version."""
    with services.database.write() as session:
        ended = AliasRepository(session).end_canary(
            version.task, alias, version=version.version, expected=expected, actor=actor(), because=because
        )
        facts = {"version": ended.version, "canary": version.version, "share": 0}
        record(session, "alias.canary", f"{version.task}@{alias}", **facts)
    return ended


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
    expected: Expected | None,
    better: bool,
    manifests: Manifests | None,
) -> tuple[Expected | None, str]:
    """Return the version that may be replaced, and a note for the history.

    Aliases other than `latest` are not judged.
    """
    if not better and alias.alias != LATEST:
        return expected, ""
    replaced, evidence = _require_good(services, version, alias, expected, better, manifests)
    shown = "better by cross-validated answers" if evidence == "cross-validated" else "better"
    return replaced, shown if better else ""


def rollback(
    services: Services, task: str, alias: str, *, expected: Expected | None = None, because: str = ""
) -> AliasMove:
    """Point an alias at its previous version, or end its canary. See `AliasRepository.rollback` for errors."""
    with services.database.write() as session:
        canary = AliasRepository(session).canary(task, alias)
        moved = AliasRepository(session).rollback(task, alias, expected=expected, actor=actor(), because=because)
        return _recorded(session, "alias.rollback", moved, ended=canary)


def meaning(database: Database, task: str, alias: str) -> tuple[int | None, Canary | None]:
    """Return the version of an alias and its canary; None if the alias does not exist. Raises NotFoundError (task)."""
    with database.read() as session:
        TaskRepository(session).get(task)
        return AliasRepository(session).state(task, alias)


def alias_history(
    database: Database, task: str, alias: str, most: int
) -> tuple[int, Canary | None, Sequence[AliasMove]]:
    """Return the current version of an alias, its canary, and its last moves, newest first.

    Raises:
        NotFoundError: the task or the alias does not exist.
    """
    with database.read() as session:
        TaskRepository(session).get(task)
        version, canary = AliasRepository(session).state(task, alias)
        history = AliasRepository(session).history(task, alias, most)
    if version is None:
        raise NotFoundError("unknown-alias", task=task, alias=alias)
    return version, canary, history


def _recorded(
    session: Session, action: str, move: AliasMove, *, renamed: bool = False, ended: Canary | None = None
) -> AliasMove:
    if move.previous != move.version or renamed or ended is not None:
        canary = {} if ended is None else {"ended_canary": ended.version}
        record(session, action, f"{move.task}@{move.alias}", version=move.version, previous=move.previous, **canary)
    return move


def _require_good(
    services: Services,
    version: EmbeddingVersion,
    alias: Reference,
    expected: Expected | None,
    better: bool,
    manifests: Manifests | None,
) -> tuple[Expected, Evidence | None]:
    """Return the version that was compared, the only one that may be replaced (0: the alias is new), and the evidence.

    If `expected` is a tag, it is returned instead, because it includes that version.

    Cross-validated answers can show that a version is better, but never prevent a move of `latest`.
    """
    with services.database.read() as session:
        current, latest = _meant(session, alias), _meant(session, Reference(alias.task, LATEST))
        AliasRepository(session).require(alias.task, str(alias.alias), expected)  # before the slow comparison
    replaced: Expected = expected if isinstance(expected, str) else current.version if current else 0
    if current is not None and current.version == version.version:
        return replaced, None  # nothing moves
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
    return replaced, evidence


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
