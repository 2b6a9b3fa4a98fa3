"""A worker that has no job to run helps with one that runs: it answers shards of it until a job waits."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING, Final

from onboard.domain.bulk import ShardClaim
from onboard.domain.worker import Trouble
from onboard.errors import CancelledError, FencedError, OnboardError
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.shards import ShardRepository
from workers.faults import TroubleError, broken_machine, passing_trouble, require_own_release, trouble_of
from workers.logs import hide_places, log_fields
from workers.progress import Heartbeat, shard_heartbeat

if TYPE_CHECKING:
    from onboard.serving.bulk.job import ShardWork

_logger = logging.getLogger(__name__)
_PAUSE_SECONDS: Final = 5.0  # after a failure that may mend itself: a store that is away


def help_out(
    services: Services, worker: str, queues: Sequence[str], lease_seconds: float, heartbeat_seconds: float
) -> bool:
    """Answer shards of jobs that run in `queues`, the most urgent first. Returns whether there was one.

    Raises:
        TroubleError: this worker cannot answer any.
    """
    with services.database.read() as session:
        if not ShardRepository(session).queues() & set(queues):
            return False
    work: ShardWork | None = None
    helped = False
    try:
        while (claim := _claim(services, worker, queues, lease_seconds)) is not None:
            helped = True
            with log_fields(job=claim.job, shard=claim.number, attempt=claim.attempt):
                heartbeat = shard_heartbeat(services.database, claim, lease_seconds, heartbeat_seconds)
                with heartbeat:
                    work, goes_on = _answered(services, worker, work, claim, heartbeat)
            if not goes_on or _job_waits(services, worker, queues):
                break
    finally:
        if work is not None:
            work.close()
    return helped


def _claim(services: Services, worker: str, queues: Sequence[str], lease_seconds: float) -> ShardClaim | None:
    with services.database.write() as session:
        require_own_release(session)
        return ShardRepository(session).claim_any(worker, queues, os.getpid(), lease_seconds)


def _job_waits(services: Services, worker: str, queues: Sequence[str]) -> bool:
    with services.database.read() as session:
        return bool(ClaimRepository(session).claimable(queues, worker))


def _answered(
    services: Services, worker: str, work: ShardWork | None, claim: ShardClaim, heartbeat: Heartbeat
) -> tuple[ShardWork | None, bool]:
    """The work on the claim's job, open, and whether to go on with other shards."""
    from onboard.serving.bulk.job import open_work

    try:
        if work is None or work.job_id != claim.job:
            if work is not None:
                work.close()
            work = open_work(services, claim.job)
        work.answer(claim, heartbeat.raise_if_stopped)
    except FencedError as error:
        _logger.warning("Work dropped: %s", error.message)
    except CancelledError as error:
        _logger.info("%s", error.message)
        _give_back(services, claim)
    except OnboardError as error:
        if error.retryable:
            _logger.warning("%s %s", error.message, error.remedy)
            _give_back(services, claim)
            sleep(_PAUSE_SECONDS)
            return work, False
        _logger.error("%s %s", error.message, error.remedy)
        if error.fault != "job":
            return _left_to_others(services, work, claim, trouble_of(error))
        _fail(services, worker, claim, error.outside.to_json())
    except Exception as error:  # the process's outermost edge: whatever a shard does, the worker goes on
        _logger.exception("The shard failed unexpectedly")
        trouble = broken_machine(error)
        if trouble is not None or passing_trouble(error) is not None:
            return _left_to_others(services, work, claim, trouble)
        message = hide_places(f"{type(error).__name__}: {error}", services.settings)
        remedy = f"This is a bug. The traceback is in the log of {worker}."
        _fail(services, worker, claim, {"code": "error", "message": message, "remedy": remedy})
        return work, False
    return work, True


def _left_to_others(
    services: Services, work: ShardWork | None, claim: ShardClaim, trouble: Trouble | None
) -> tuple[ShardWork | None, bool]:
    """The shard is free again, for a worker that can answer it. Raises TroubleError where this one can do nothing."""
    _give_back(services, claim)
    if trouble is not None and trouble.stops:
        raise TroubleError(trouble)
    sleep(_PAUSE_SECONDS)
    return work, False


def _give_back(services: Services, claim: ShardClaim) -> None:
    with services.database.write() as session:
        ShardRepository(session).give_back(claim)


def _fail(services: Services, worker: str, claim: ShardClaim, error: dict[str, object]) -> None:
    with suppress(FencedError), services.database.write() as session:
        ShardRepository(session).fail(claim, {**error, "worker": worker, "shard": claim.number})
