"""The origin of every version, in few columns, to compute the descendants of a task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import func, select, union

from onboard.domain.descent import Descent, Embedded, Root, TunedVersion, descent
from onboard.domain.prior import form_of
from onboard.registry.priors import PriorRepository
from onboard.registry.repository import Repository
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow

BASE_OF_JOB = JobRow.spec[("options", "base_digest")].as_string()


class DescentRepository(Repository):
    """Descendants of a task, which may have been deleted."""

    def root(self, task: str) -> Root:
        """Return the bases and lifetime of the task."""
        bases = union(
            select(EmbeddingVersionRow.base_digest).where(EmbeddingVersionRow.task == task),
            select(BASE_OF_JOB).where(JobRow.task == task, BASE_OF_JOB.is_not(None)),
        )
        digests = frozenset(self._session.scalars(bases))
        times = select(TaskRow.created_at, func.coalesce(TaskRow.deleted_at, math.inf)).where(TaskRow.name == task)
        lifetime = self._session.execute(times).one_or_none()
        since, until = (math.inf, math.inf) if lifetime is None else lifetime
        return Root(task, digests, since, until, PriorRepository(self._session).fitted_to(task))

    def of(self, root: Root) -> Descent:
        """Return its remaining descendants."""
        tuned, collected = self._tuned()
        descendants = descent(root, self._embedded(), tuned)
        hypernetworks = {link: why for link, why in descendants.hypernetworks.items() if link not in collected}
        return Descent(descendants.versions, hypernetworks)

    def aliases(self) -> dict[str, Sequence[str]]:
        """Return the aliases of every version that has any, also as their canary, by reference."""
        aliases = defaultdict(list)
        rows = select(AliasRow.task, AliasRow.version, AliasRow.canary, AliasRow.alias)
        for task, version, canary, alias in self._session.execute(rows.order_by(AliasRow.task, AliasRow.alias)):
            aliases[f"{task}@v{version}"].append(alias)
            if canary is not None:
                aliases[f"{task}@v{canary}"].append(alias)
        return dict(aliases)

    def _embedded(self) -> list[Embedded]:
        row = EmbeddingVersionRow
        columns = row.task, row.version, row.base_digest, row.parent, row.mixed_from, row.job, row.created_at
        statement = (
            select(*columns, row.hypernetwork_version, row.learned_under, row.prior_version, row.pairs)
            .join(TaskRow, TaskRow.name == row.task)
            .where(TaskRow.deleted_at.is_(None))
            .order_by(row.task, row.version)
        )
        rows = self._session.execute(statement)
        return [
            Embedded(
                task, version, base, tuple(mixed or ()) or (parent,),
                frozenset({pinned} if origin is None else {pinned, origin}), job, created_at,
                None if prior is None else (form_of(pairs=bool(pairs)), prior),
            )
            for task, version, base, parent, mixed, job, created_at, pinned, origin, prior, pairs in rows
        ]  # fmt: skip

    def _tuned(self) -> tuple[list[TunedVersion], set[tuple[str, int]]]:
        """Return every hypernetwork version, and which of them were collected."""
        row = HypernetworkRow
        columns = row.base_digest, row.version, row.parent, row.job, JobRow.task, row.created_at
        statement = select(*columns, row.collected_at).outerjoin(JobRow, JobRow.id == row.job)
        links, collected = [], set()
        rows = self._session.execute(statement.order_by(row.base_digest, row.version))
        for base, version, parent, job, task, created_at, collected_at in rows:
            links.append(TunedVersion(base, version, parent, job, task, created_at))
            if collected_at is not None:
                collected.add(links[-1].link)
        return links, collected
