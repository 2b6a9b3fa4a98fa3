"""Quotas in the database. They are enforced in the transaction that queues the job or stores the version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, SQLColumnExpression, exists, func, literal, or_, select

from onboard.domain.quota import Quota, Use
from onboard.errors import NotFoundError, QuotaError
from onboard.registry.access_tables import SessionRow, TokenRow
from onboard.registry.audit import record
from onboard.registry.clock import database_now
from onboard.registry.quota_tables import OwnedArtifactRow, QuotaRow
from onboard.registry.repository import Repository, record_of
from onboard.registry.states import IS_OPEN
from onboard.registry.tables import ArtifactRow, JobRow
from onboard.registry.tokens import is_live
from onboard.registry.upsert import insert_for, put_row


class QuotaRepository(Repository):
    """What owners may have, and what they have."""

    def put(self, owner: str, limits: Mapping[str, int | None]) -> Quota:
        """Set limits of an owner; those that are not named stay.

        Args:
            limits: `max_jobs` and `max_bytes`; None lifts a limit.

        Raises:
            NotFoundError: no valid token and no signed-in person has that name.
        """
        if not self._session.scalar(select(_is_anybody(literal(owner)))):
            raise NotFoundError("unknown-owner", owner=owner)
        if limits:
            put_row(self._session, QuotaRow, {"owner": owner}, {**limits, "updated_at": database_now()})
            record(self._session, "quota.set", owner, **limits)
        return self.of([owner]).get(owner) or Quota(owner)

    def of(self, owners: Collection[str]) -> dict[str, Quota]:
        """The quotas of these owners, by name; who has none is missing."""
        statement = select(QuotaRow).where(QuotaRow.owner.in_(set(owners)))
        return {row.owner: record_of(Quota, row) for row in self._session.scalars(statement)}

    def use(self, owner: str) -> Use | None:
        """An owner's quota and what is used of it; None without a quota."""
        quota = self.of([owner]).get(owner)
        return None if quota is None else self._use(quota)

    def list(self) -> Sequence[Use]:
        """Every owner with open jobs, or with a quota and a valid token, by name."""
        open_jobs: dict[str, dict[str, int]] = defaultdict(dict)
        counts = select(JobRow.owner, JobRow.state, func.count()).where(IS_OPEN, JobRow.owner.is_not(None))
        for owner, state, count in self._session.execute(counts.group_by(JobRow.owner, JobRow.state)):
            open_jobs[str(owner)][state] = count
        statement = select(QuotaRow).where(or_(_is_anybody(QuotaRow.owner), QuotaRow.owner.in_(open_jobs)))
        quotas = {row.owner: record_of(Quota, row) for row in self._session.scalars(statement)}
        stored = self._bytes(quota.owner for quota in quotas.values() if quota.max_bytes is not None)
        return [
            _use(quotas.get(owner) or Quota(owner), open_jobs.get(owner, {}), stored)
            for owner in sorted({*open_jobs, *quotas})
        ]

    def require_room(self, owner: str, new_bytes: Mapping[str, int] | None = None, *, jobs: int = 1) -> None:
        """Refuse work early that would be refused later, before anything is stored for it. Decides nothing.

        Args:
            owner: name of the token.
            new_bytes: sizes of the artifacts to be stored, by digest.

        Raises:
            QuotaError: the owner has no job left, or fewer bytes than these.
        """
        use = self.use(owner)
        if use is None:
            return
        _require_bytes(use, self._not_yet_owned(owner, new_bytes or {}) if use.max_bytes is not None else 0)
        _require_jobs(use, jobs)

    def admit_job(self, owner: str | None, artifacts: Collection[str] = ()) -> None:
        """Let a job stay that this transaction queued, with what was stored for it.

        Args:
            owner: of the job; None has no quota.

        Raises:
            QuotaError: it is one too many, or no byte is left for it.
        """
        self._admit(owner, artifacts, jobs=1)

    def admit_bytes(self, owner: str | None, artifacts: Collection[str]) -> None:
        """Let bytes stay that this transaction names, where no job was queued. Raises QuotaError."""
        self._admit(owner, artifacts, jobs=0)

    def _admit(self, owner: str | None, artifacts: Collection[str], jobs: int) -> None:
        """Charge the artifacts, and check the quota as it was before this transaction's jobs and bytes."""
        if owner is None:
            return
        quota = self._held(owner)
        added = self.charge(owner, artifacts)
        if quota is not None:
            use = self._use(quota)
            if jobs:
                _require_jobs(replace(use, queued=use.queued - jobs), jobs)
            _require_bytes(replace(use, bytes=None if use.bytes is None else use.bytes - added), added)

    def charge_job(self, job: str, artifacts: Collection[str]) -> None:
        """Count what a job published for its owner, whatever the limit: its work is done."""
        owner = self._session.scalar(select(JobRow.owner).where(JobRow.id == job))
        if owner is not None:
            self.charge(owner, artifacts)

    def charge(self, owner: str, artifacts: Collection[str]) -> int:
        """Count stored artifacts for an owner, each once. Returns the bytes that did not count before."""
        digests = sorted(set(artifacts))
        if not digests:
            return 0
        columns = ["owner", "artifact", "size_bytes"]
        stored = select(literal(owner), ArtifactRow.digest, ArtifactRow.size_bytes)
        stored = stored.where(ArtifactRow.digest.in_(digests)).order_by(ArtifactRow.digest)
        statement = insert_for(self._session, OwnedArtifactRow).from_select(columns, stored)
        statement = statement.on_conflict_do_nothing(index_elements=["owner", "artifact"])
        return sum(self._session.scalars(statement.returning(OwnedArtifactRow.size_bytes)))

    def _held(self, owner: str) -> Quota | None:
        """The quota, locked until the transaction ends: another job of the owner waits, then counts this one."""
        row = self._session.scalars(select(QuotaRow).where(QuotaRow.owner == owner).with_for_update()).one_or_none()
        return None if row is None else record_of(Quota, row)

    def _use(self, quota: Quota) -> Use:
        counts = select(JobRow.state, func.count()).where(IS_OPEN, JobRow.owner == quota.owner).group_by(JobRow.state)
        open_jobs = {str(state): int(count) for state, count in self._session.execute(counts)}
        return _use(quota, open_jobs, self._bytes([quota.owner] if quota.max_bytes is not None else ()))

    def _bytes(self, owners: Iterable[str]) -> dict[str, int]:
        """What is stored for each of these owners."""
        names = list(owners)
        if not names:
            return {}
        row = OwnedArtifactRow
        totals = select(row.owner, func.sum(row.size_bytes)).where(row.owner.in_(names)).group_by(row.owner)
        return dict.fromkeys(names, 0) | {owner: int(size) for owner, size in self._session.execute(totals)}

    def _not_yet_owned(self, owner: str, sizes: Mapping[str, int]) -> int:
        owned = select(OwnedArtifactRow.artifact).where(
            OwnedArtifactRow.owner == owner, OwnedArtifactRow.artifact.in_(sizes)
        )
        owned_digests = set(self._session.scalars(owned))
        return sum(size for digest, size in sizes.items() if digest not in owned_digests)


def _use(quota: Quota, open_jobs: Mapping[str, int], stored: Mapping[str, int]) -> Use:
    """The use of a quota, from the numbers of open jobs by state and the stored bytes of limited owners."""
    queued, running = open_jobs.get("queued", 0), open_jobs.get("running", 0)
    return Use(quota.owner, queued, running, quota.max_jobs, stored.get(quota.owner), quota.max_bytes)


def _is_anybody(name: SQLColumnExpression[str]) -> ColumnElement[bool]:
    """Whether a valid token or a signed-in person has this name."""
    of_token = exists().where(TokenRow.name == name, is_live())
    return or_(of_token, exists().where(SessionRow.name == name, SessionRow.expires_at > database_now()))


def _require_jobs(use: Use, more: int) -> None:
    """Raise QuotaError if the owner has fewer jobs left than `more`."""
    if use.jobs_left is not None and use.jobs_left < more:
        raise QuotaError("quota-jobs", owner=use.owner, **use.remaining())


def _require_bytes(use: Use, more: int) -> None:
    """Raise QuotaError if the owner has no byte left, or fewer than `more`."""
    if use.bytes_left is not None and (use.bytes_left == 0 or use.bytes_left < more):
        raise QuotaError("quota-bytes", owner=use.owner, needed_bytes=more, **use.remaining())
