"""Detect a submitted file that contains all rows of the task's last dataset and more: it adds rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from onboard.data.amended import is_superset
from onboard.domain.counting import counted
from onboard.domain.dataset import Dataset
from onboard.errors import ConflictError, DamagedError, NotFoundError
from onboard.jobs.standing import standing
from onboard.registry.jobs import JobRepository
from onboard.registry.snapshots import SnapshotRepository

if TYPE_CHECKING:
    from onboard.domain.job import Job
    from onboard.jobs.request import JobRequest
    from onboard.registry.services import Services


def as_addition(services: Services, request: JobRequest) -> tuple[JobRequest, str | None]:
    """Return the request, marked as an addition if it is one, and a message about it; otherwise unchanged, and None.

    Args:
        request: a checked dataset and the requested job.
    """
    dataset, spec = request.checked.dataset, request.spec
    if spec.change is not None or not dataset.train:
        return request, None
    earlier = None if request.key is None else _queued_under(services, request.key)
    if earlier is not None:  # a repeated request whose response was lost must stay the same
        change = earlier.spec.change
        options = spec.options if change is None else {**spec.options, "change": change}
        return replace(request, spec=replace(spec, options=options)), None
    with suppress(NotFoundError, ConflictError, DamagedError):  # nothing here that it could add to
        stands = standing(services, spec.task)
        with services.database.read() as session:
            fewer = SnapshotRepository(session).get(stands.digest).rows["train"] < len(dataset.train)
        stored = stands.dataset(services) if fewer else None
        if stored is not None and is_superset(dataset, stored):
            before = set(stored.train)
            new = tuple(row for row in dataset.train if row not in before)
            file = request.checked.report.source
            added = stands.change("add", file=file, counts={"added": len(new)})
            options = {**spec.options, "change": added.to_json()}
            rows = Dataset(dataset.kind, dataset.labels, new, low=dataset.low, high=dataset.high)
            said = (
                f"The file has all {len(before):,} rows of the task {spec.task!r} and {counted(len(new), 'row')} more: "
                "they are added to it. You can also pass only the new rows: onboard add "
                f"{spec.task} FILE"
            )
            return replace(request, spec=replace(spec, options=options), rows=rows), said
    return request, None


def _queued_under(services: Services, key: str) -> Job | None:
    with services.database.read() as session:
        return JobRepository(session).under(key)
