"""A served home with a past: versions, workers, and a job of every end, for commands and clients from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from onboard.bases import Base
from onboard.domain.job import JobState, Stage
from onboard.registry.services import Services
from support import watched_jobs as past
from support.program import Place
from support.published import add_version, embedding_of
from support.served import Served, served

SIDES = ("here", "there")


@dataclass
class Remote:
    """A served home with a past.

    Args:
        jobs: ids of its jobs by what became of them.
    """

    service: Served
    jobs: dict[str, str]


@contextmanager
def served_with_a_past(place: Place, base: Base) -> Iterator[Remote]:
    """`onboard serve` for a place with a past until the block ends."""
    place.home.mkdir()
    with served(place) as service, place.services() as services:
        yield Remote(service, _with_a_past(services, base))


def _with_a_past(services: Services, base: Base) -> dict[str, str]:
    database = services.database
    past.worker(database, "w1", queues=("default", "gpu", "slow"), silent=-900)  # alive until the tests are over
    past.worker(database, "w2", queues=("gpu",), silent=-900)
    for seed in (1, 2):
        add_version(services, base, "mood", ("bad", "good"), ("bad", "good"), z=embedding_of(seed))
    for side in SIDES:
        add_version(services, base, f"old-{side}", ("bad", "good"), ("bad", "good"))
    jobs = {f"queued {side}": past.queued(database, queue="slow").id for side in SIDES}
    jobs |= {f"failed {side}": past.ended(database, ago=60, state=JobState.FAILED) for side in SIDES}
    jobs |= {"succeeded": past.ended(database, ago=50), "waiting": past.queued(database, queue="slow").id}
    jobs["running"] = past.running(database, "w1", ago=9, stage=Stage.TRAIN, stage_ago=5, note="step 3", queue="gpu").id
    return jobs
