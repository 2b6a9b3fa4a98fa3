"""Jobs that rebuild versions without a deleted task tune in their order, each from the head that the one before left.

So the hypernetworks are those of a history without the task, however many workers there are.
"""

from __future__ import annotations

from onboard.domain.job import Job
from onboard.errors import SlotTakenError
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services


def require_turn_to_tune(job: Job, services: Services) -> None:
    """Raise SlotTakenError while a job that was queued earlier rebuilds a version and may tune; see above."""
    if not job.spec.replaces:
        return
    with services.database.read() as session:
        earlier = JobRepository(session).rebuilding_before(job)
    if earlier is not None:
        raise SlotTakenError("earlier-rebuilding-open", holder=earlier)
