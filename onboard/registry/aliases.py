"""Aliases: movable names of versions, with their history. `latest` is one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, insert, or_, select, tuple_, update

from onboard.domain.canary import CANARY_ENDED, Canary, alias_tag, require_share, share_text
from onboard.domain.documents import document_of
from onboard.domain.names import Reference, require_alias
from onboard.domain.task import AliasMove, AliasNames, fitting_names, texts_taken
from onboard.domain.webhook import MOVED
from onboard.errors import ConflictError, NotFoundError, PreconditionFailedError
from onboard.registry.clock import database_now
from onboard.registry.outbox import OutboxRepository
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import AliasMoveRow, AliasRow, EmbeddingVersionRow, TaskRow
from onboard.registry.upsert import put_row

_ROLLBACK = "rollback"
_CANARY: Final = "canary"

_SHARED_BY_NONE: Final[Mapping[str, Any]] = {"canary": None, "share": None}
_NO_CANARY: Final[Mapping[str, Any]] = {**_SHARED_BY_NONE, "canary_at": None}

Expected = int | str
"""The state of an alias that a change requires: its version, or its tag, which includes its canary; 0: no alias."""


class Kept(Enum):
    """Keep the alias's current label names."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


def names_version() -> ColumnElement[bool]:
    """Condition: an alias's row points to the embedding version of an outer query."""
    return and_(AliasRow.task == EmbeddingVersionRow.task, AliasRow.version == EmbeddingVersionRow.version)


def serves_version() -> ColumnElement[bool]:
    """Condition: an alias's row points to the embedding version of an outer query, as its version or its canary."""
    return and_(
        AliasRow.task == EmbeddingVersionRow.task,
        or_(AliasRow.version == EmbeddingVersionRow.version, AliasRow.canary == EmbeddingVersionRow.version),
    )


class AliasRepository(Repository):
    """The aliases of every task."""

    def find(self, task: str, alias: str) -> int | None:
        """Return the version that the alias points to, or None."""
        return self._session.scalars(
            select(AliasRow.version).where(AliasRow.task == task, AliasRow.alias == alias)
        ).one_or_none()

    def list(self, task: str) -> dict[str, int]:
        """Return every alias of the task with its version."""
        rows = self._session.execute(
            select(AliasRow.alias, AliasRow.version).where(AliasRow.task == task).order_by(AliasRow.alias)
        )
        return dict(rows.all())

    def state(self, task: str, alias: str) -> tuple[int | None, Canary | None]:
        """Return the version that the alias points to and its canary; None for each that does not exist."""
        statement = select(AliasRow.version, AliasRow.canary, AliasRow.share)
        row = self._session.execute(statement.where(AliasRow.task == task, AliasRow.alias == alias)).one_or_none()
        if row is None:
            return None, None
        return row.version, Canary(row.canary, row.share) if row.canary and row.share else None

    def canary(self, task: str, alias: str) -> Canary | None:
        """Return the canary of the alias, if it has one."""
        return self.state(task, alias)[1]

    def canaries(self, task: str) -> dict[str, Canary]:
        """Return the canary of every alias of the task that has one."""
        statement = select(AliasRow.alias, AliasRow.canary, AliasRow.share).where(
            AliasRow.task == task, AliasRow.canary.is_not(None)
        )
        rows = self._session.execute(statement.order_by(AliasRow.alias))
        return {alias: Canary(version, share) for alias, version, share in rows if version and share}

    def canaries_of(self, references: Iterable[Reference]) -> dict[str, Canary]:
        """Return the canaries of all references by an alias that has one, by their text, in one query."""
        texts = {(reference.task, reference.alias): str(reference) for reference in references if reference.alias}
        statement = select(AliasRow.task, AliasRow.alias, AliasRow.canary, AliasRow.share).where(
            tuple_(AliasRow.task, AliasRow.alias).in_(list(texts)), AliasRow.canary.is_not(None)
        )
        rows = self._session.execute(statement)
        return {texts[task, alias]: Canary(version, share) for task, alias, version, share in rows if version and share}

    def require(
        self, task: str, alias: str, expected: Expected | None, *, lock: bool = False
    ) -> tuple[int | None, Canary | None]:
        """Return the alias's `state` if it is as expected.

        Args:
            expected: the version or tag that it must have; None allows any.
            lock: whether to lock the task until the transaction ends.

        Raises:
            PreconditionFailedError: it is not as expected.
        """
        if lock:
            self._lock(task)
        present, canary = self.state(task, alias)
        _require_unmoved(task, alias, present, canary, expected)
        return present, canary

    def start_canary(
        self,
        task: str,
        alias: str,
        version: int,
        share: float,
        *,
        expected: Expected | None = None,
        actor: str | None = None,
        reason: str = _CANARY,
    ) -> AliasMove:
        """Let a second version answer a share of the alias's texts, or change the share. It replaces another canary.

        The alias's version stays. If nothing changes, nothing is recorded.

        Args:
            share: fraction of the texts, above 0 and below 1.
            expected: as in `move`.

        Raises:
            InputError: the alias or the share is invalid.
            NotFoundError: the version does not exist.
            ConflictError: the alias does not exist or already names the version, or the version takes other inputs.
            PreconditionFailedError: the alias is not as expected.
        """
        require_alias(alias)
        canary = Canary(version, require_share(share))
        _, current = self.require(task, alias, expected, lock=True)
        present = self.require_fit_for_canary(task, alias, version)
        if current == canary:
            return replace(self.history(task, alias, 1)[0], previous=present, actor=actor, reason=reason)
        values: dict[str, Any] = {"canary": version, "share": share}
        if current is None or current.version != version:
            values["canary_at"] = database_now()
        return self._put_canary(task, alias, present, values, actor, reason)

    def require_fit_for_canary(self, task: str, alias: str, version: int) -> int:
        """Return the alias's version if the other version can be its canary.

        Raises:
            NotFoundError: the version does not exist.
            ConflictError: see `start_canary`.
        """
        self._require_version(task, version)
        present = self.find(task, alias)
        if present is None:
            raise ConflictError("canary-without-alias", task=task, alias=alias, version=version)
        if present == version:
            raise ConflictError("canary-is-the-version", task=task, alias=alias, version=version)
        self._require_same_inputs(task, present, version)
        return present

    def end_canary(
        self,
        task: str,
        alias: str,
        *,
        version: int | None = None,
        expected: Expected | None = None,
        actor: str | None = None,
        because: str = "",
    ) -> AliasMove:
        """End the canary of the alias, whose version then answers all texts.

        Args:
            version: the version that must be the canary; None allows any.
            expected: as in `move`.
            because: the reason, for the history.

        Raises:
            NotFoundError: the alias does not exist.
            ConflictError: it has no canary, or another one.
            PreconditionFailedError: the alias is not as expected.
        """
        present, current = self.require(task, alias, expected, lock=True)
        if present is None:
            raise NotFoundError("unknown-alias", task=task, alias=alias)
        if current is None:
            raise ConflictError("no-canary", task=task, alias=alias)
        if version is not None and version != current.version:
            raise ConflictError("canary-is-another", task=task, alias=alias, version=version, canary=current.version)
        reason = f"{CANARY_ENDED}: {because}" if because else CANARY_ENDED
        return self._put_canary(task, alias, present, _NO_CANARY, actor, reason)

    def _put_canary(
        self, task: str, alias: str, present: int, values: Mapping[str, Any], actor: str | None, reason: str
    ) -> AliasMove:
        """Change the canary of an alias, and record it. The alias does not move, so that no webhook is sent."""
        row = AliasRow
        self._session.execute(update(row).where(row.task == task, row.alias == alias).values(**values))
        facts = {"version": present, "previous": present, "names": self.names(task, alias)}
        canary = {"canary": values["canary"], "share": values["share"]}
        return self._record(task, alias, actor=actor, reason=reason, **facts, **canary)

    def _record(self, task: str, alias: str, **facts: Any) -> AliasMove:
        statement = insert(AliasMoveRow).values(task=task, alias=alias, at=database_now(), **facts)
        return record_of(AliasMove, self._session.scalars(statement.returning(AliasMoveRow)).one())

    def _require_same_inputs(self, task: str, present: int, version: int) -> None:
        """Raise ConflictError if one of the versions answers one text and the other a pair, or they differ in kind."""
        row = EmbeddingVersionRow
        statement = select(row.version, row.task_kind, row.pairs).where(
            row.task == task, row.version.in_((present, version))
        )
        inputs = {number: (kind, pairs) for number, kind, pairs in self._session.execute(statement)}
        (kind, pairs), (other_kind, other_pairs) = inputs[present], inputs[version]
        facts: dict[str, Any] = {"task": task, "version": version, "present": present}
        if kind != other_kind:
            raise ConflictError("canary-kind-differs", kind=other_kind, present_kind=kind, **facts)
        if pairs is not None and other_pairs is not None and pairs != other_pairs:
            taken, taken_now = texts_taken(other_pairs), texts_taken(pairs)
            raise ConflictError("canary-inputs-differ", taken=taken, present_taken=taken_now, **facts)

    def move(
        self,
        task: str,
        alias: str,
        version: int,
        *,
        expected: Expected | None = None,
        actor: str | None = None,
        reason: str = "",
        announce: bool = True,
        names: AliasNames | Kept | None = KEPT,
    ) -> AliasMove:
        """Point the alias at a version, and end its canary. If nothing changes, no move is recorded and `previous` is
        that version.

        Args:
            expected: the version that the alias must currently point to, or its tag (compare and swap); 0 means none.
            announce: whether to send webhooks.
            names: names for labels of the version; None uses those of the version. KEPT keeps the current names if the
                version has all of their labels.

        Raises:
            InputError: `alias` is not a name, or looks like a version number.
            NotFoundError: the version does not exist.
            PreconditionFailedError: the alias does not point to `expected`.
        """
        require_alias(alias)
        self._lock(task)
        self._require_version(task, version)
        previous, canary = self.require(task, alias, expected)
        present_names = self.names(task, alias)
        if isinstance(names, Kept):
            names = self._fitting(task, version, present_names)
        names = [list(pair) for pair in names] if names else None
        if previous == version and names == present_names:  # a second entry would break rollback
            if canary is not None:
                return self._put_canary(task, alias, version, _NO_CANARY, actor, CANARY_ENDED)
            return replace(self.history(task, alias, 1)[0], previous=version, actor=actor, reason=reason)
        put_row(
            self._session, AliasRow, {"task": task, "alias": alias},
            {"version": version, "names": names, "updated_at": database_now(), **_NO_CANARY},
        )  # fmt: skip
        move = self._record(
            task, alias, version=version, previous=previous, actor=actor, reason=reason, names=names, **_SHARED_BY_NONE
        )
        if announce:
            document = document_of(move, "at", "canary", "share")  # an event has a separate time
            OutboxRepository(self._session).add(MOVED, document)
        return move

    def rollback(
        self, task: str, alias: str, *, expected: Expected | None = None, actor: str | None = None, because: str = ""
    ) -> AliasMove:
        """Point the alias at the version that preceded the current one. Repeated rollbacks go further back.

        If the alias has a canary, only the canary ends.

        Args:
            expected: as in `move`.
            because: the reason, for the history.

        Raises:
            NotFoundError: the alias does not exist.
            PreconditionFailedError: the alias does not point to `expected`.
            ConflictError: no earlier version exists any more.
        """
        self._lock(task)
        current, canary = self.state(task, alias)
        if current is None:
            raise NotFoundError("unknown-alias", task=task, alias=alias)
        _require_unmoved(task, alias, current, canary, expected)
        if canary is not None:
            return self.end_canary(task, alias, actor=actor, because=because)
        before = self._line(task, alias)[:-1]
        if not before:
            raise ConflictError("alias-without-past", task=task, alias=alias, present=current)
        reason = f"{_ROLLBACK}: {because}" if because else _ROLLBACK
        names = next((move.names for move in self.history(task, alias) if move.version == before[-1]), None)
        return self.move(task, alias, before[-1], actor=actor, reason=reason, names=names)

    def names(self, task: str, alias: str) -> AliasNames | None:
        """Return the alias's names for labels of its version; None if it renames no labels."""
        statement = select(AliasRow.names).where(AliasRow.task == task, AliasRow.alias == alias)
        return self._session.scalars(statement).one_or_none()

    def names_of(self, references: Iterable[Reference]) -> dict[str, AliasNames]:
        """Return the label names of all references with renamed labels, by their text, in one query."""
        texts = {(reference.task, reference.alias): str(reference) for reference in references if reference.alias}
        statement = select(AliasRow.task, AliasRow.alias, AliasRow.names).where(
            tuple_(AliasRow.task, AliasRow.alias).in_(list(texts))
        )
        return {texts[task, alias]: names for task, alias, names in self._session.execute(statement) if names}

    def _fitting(self, task: str, version: int, names: AliasNames | None) -> AliasNames | None:
        """Return the names if the version has all of their labels; otherwise None."""
        if not names:
            return None
        statement = select(EmbeddingVersionRow.labels).where(
            EmbeddingVersionRow.task == task, EmbeddingVersionRow.version == version
        )
        return fitting_names(self._session.scalars(statement).one(), names)

    def history(self, task: str, alias: str, limit: int | None = None) -> Sequence[AliasMove]:
        """Return the moves of the alias, or the last `limit`, newest first."""
        rows = self._session.scalars(
            select(AliasMoveRow)
            .where(AliasMoveRow.task == task, AliasMoveRow.alias == alias)
            .order_by(AliasMoveRow.id.desc())
            .limit(limit)
        )
        return [record_of(AliasMove, row) for row in rows]

    def _line(self, task: str, alias: str) -> Sequence[int]:
        """Return the versions that rollbacks go through, current one last, without deleted ones."""
        existing = set(
            self._session.scalars(select(EmbeddingVersionRow.version).where(EmbeddingVersionRow.task == task))
        )
        moves = self._session.execute(
            select(AliasMoveRow.version, AliasMoveRow.reason)
            .where(AliasMoveRow.task == task, AliasMoveRow.alias == alias)
            .order_by(AliasMoveRow.id)
        )
        line: list[int] = []
        for version, reason in moves:
            if reason.partition(":")[0] == _ROLLBACK:
                del line[-1:]
            if line[-1:] != [version]:  # in histories of earlier releases a rollback could lead anywhere
                line.append(version)
        return [version for version, _ in groupby(version for version in line if version in existing)]

    def _lock(self, task: str) -> None:
        self._session.execute(select(TaskRow.name).where(TaskRow.name == task).with_for_update())

    def _require_version(self, task: str, version: int) -> None:
        moves = self._session.scalars(
            select(EmbeddingVersionRow.version)
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                EmbeddingVersionRow.task == task,
                EmbeddingVersionRow.version == version,
                TaskRow.deleted_at.is_(None),
            )
        ).one_or_none()
        if moves is None:
            raise NotFoundError("unknown-version", task=task, version=version)


def _require_unmoved(
    task: str, alias: str, present: int | None, canary: Canary | None, expected: Expected | None
) -> None:
    """Raise PreconditionFailedError if `expected` is given and differs from the current version or tag; 0 means none.

    Args:
        present, canary: the alias's current version and canary.
    """
    if expected is None or expected == (present or 0):
        return
    facts: dict[str, Any] = {"task": task, "alias": alias, "version": present}
    if isinstance(expected, str):
        if expected != tag_of(present, canary):
            raise PreconditionFailedError("alias-changed-meanwhile", now=state_text(present, canary), **facts)
        return
    if not present:
        raise PreconditionFailedError("alias-gone", **facts)
    if not expected:
        raise PreconditionFailedError("alias-exists", **facts)
    raise PreconditionFailedError("alias-moved", expected=expected, **facts)


def tag_of(present: int | None, canary: Canary | None) -> str:
    """Return the tag of an alias's state; empty if the alias does not exist."""
    if present is None:
        return ""
    return alias_tag(present) if canary is None else alias_tag(present, canary.version, canary.share)


def state_text(present: int | None, canary: Canary | None) -> str:
    """Describe the state of an alias: "is v3 now, with v4 for 10%"."""
    if present is None:
        return "does not exist"
    return f"is v{present} now" + ("" if canary is None else f", with v{canary.version} for {share_text(canary.share)}")
