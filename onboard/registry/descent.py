"""The origin of every version, in few columns, to compute the descendants of a task."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import func, select, union

from onboard.domain.descent import Descent, Embedded, Root, TunedVersion, descent
from onboard.domain.methods import WITH_EMBEDDING
from onboard.domain.prior import form_of
from onboard.registry.priors import PriorRepository
from onboard.registry.repository import Repository
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow

BASE_OF_JOB = JobRow.spec[("options", "base_digest")].as_string()
EMBEDDED_AT: Final = "embedded_at"  # the option that jobs of deleted tasks keep: when the task first had an embedding


class DescentRepository(Repository):
    """Descendants of a task, which may have been deleted."""

    def root(self, task: str) -> Root:
        """Return the bases and lifetime of the task."""
        bases = union(
            select(EmbeddingVersionRow.base_digest).where(EmbeddingVersionRow.task == task),
            select(BASE_OF_JOB).where(JobRow.task == task, BASE_OF_JOB.is_not(None)),
        )
        digests = frozenset(self._session.scalars(bases))
        until = select(func.coalesce(TaskRow.deleted_at, math.inf)).where(TaskRow.name == task)
        return Root(
            task, digests, self._embedded_at(task, digests), self._session.scalars(until).one_or_none() or math.inf,
            PriorRepository(self._session).fitted_to(task),
        )  # fmt: skip

    def _embedded_at(self, task: str, bases: frozenset[str]) -> dict[str, float]:
        """Return when the task first had an embedding, by base; if versions are missing, when it may have had one."""
        row = EmbeddingVersionRow
        of_task = select(row.base_digest, row.created_at, row.method).where(row.task == task)
        versions = self._session.execute(of_task).all()
        known = select(TaskRow.created_at).where(TaskRow.name == task, TaskRow.last_version > len(versions))
        created_at = self._session.scalars(known).one_or_none()
        if versions and created_at is not None:
            return dict.fromkeys(bases, created_at)
        dates = [(base, at) for base, at, method in versions if method in WITH_EMBEDDING]
        kept = JobRow.spec[("options", EMBEDDED_AT)].as_float()
        dates += self._session.execute(select(BASE_OF_JOB, kept).where(JobRow.task == task, kept.is_not(None)))
        return dict(sorted(dates, key=lambda date: -date[1]))  # the earliest of each base is the last

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
        versions = [
            Embedded(
                task, version, base, tuple(mixed or ()) or (parent,),
                frozenset({pinned} if origin is None else {pinned, origin}), job, created_at,
                None if prior is None else (form_of(pairs=bool(pairs)), prior),
            )
            for task, version, base, parent, mixed, job, created_at, pinned, origin, prior, pairs in rows
        ]  # fmt: skip
        return self._with_left_out(versions)

    def _with_left_out(self, versions: Sequence[Embedded]) -> list[Embedded]:
        """Return the versions with the tasks that their prior was fitted without; none where no job tells."""
        left_out = dict(self._left_out())
        by_reference: dict[str, Embedded] = {}
        for version in versions:
            before = by_reference.get(version.parents[0])
            if version.job is not None:
                without = left_out.get(version.reference, frozenset())
            elif before is not None and (before.task, before.prior) == (version.task, version.prior):
                without = before.prior_without  # it has the readout of the version that it was made of
            else:
                without = frozenset()
            by_reference[version.reference] = replace(version, prior_without=without)
        return list(by_reference.values())

    def _left_out(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each version whose job tells which tasks its prior was fitted without, with these."""
        row, use = EmbeddingVersionRow, JobRow.result["prior"]
        statement = (
            select(row.task, row.version, row.prior_digest, use)
            .join(JobRow, JobRow.id == row.job)
            .where(row.prior_version.is_not(None))
        )
        for task, version, digest, prior in self._session.execute(statement):
            if prior and prior.get("digest") == digest:
                yield f"{task}@v{version}", frozenset(prior.get("left_out", ()))

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
