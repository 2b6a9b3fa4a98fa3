"""What tells an open page that something happened, by server-sent events; the page then asks for its part anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.following import COMMENT_SECONDS, Readers, event_stream
from onboard.api.routes.jobs import JobId
from onboard.domain.access import Scope
from onboard.errors import UnavailableError
from onboard.jobs.control import find_job
from onboard.jobs.status import pulse
from onboard.registry.database import Database

LOOK_SECONDS: Final = 1.0
_READ: Final = [Depends(requires(Scope.READ))]

router = APIRouter(include_in_schema=False)


class Pulse:
    """The present pulse of the service, read once a second however many pages are open. Used on the event loop only."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._read_at = -LOOK_SECONDS
        self._beat = ""

    async def read(self, database: Database) -> str:
        """What `onboard.jobs.status.pulse` said within the last second. Raises UnavailableError."""
        async with self._lock:
            if time.monotonic() - self._read_at >= LOOK_SECONDS:
                self._beat = await run_in_threadpool(pulse, database)
                self._read_at = time.monotonic()
            return self._beat


@router.get("/live", dependencies=_READ)
async def follow_all(request: Request, services: OpenServices) -> StreamingResponse:
    """An event `news` whenever something happened to a job, a worker or a queue."""
    readers: Readers = request.app.state.readers
    readers.require_room()
    beats = _beats(request.app.state.pulse, services.database, readers)
    return event_stream(readers.present(beats))


@router.get("/live/{job}", dependencies=_READ)
def follow_one(
    job: JobId, request: Request, services: OpenServices, since: Annotated[int, Query(ge=0, lt=2**53)] = 0
) -> StreamingResponse:
    """The events of one job after `since`, as `/v1/jobs/{job}/events` has them."""
    readers: Readers = request.app.state.readers
    readers.require_room()
    return event_stream(readers.follow(services.database, find_job(services.database, job).id, since))


async def _beats(pulse: Pulse, database: Database, readers: Readers) -> AsyncIterator[str]:
    last, said_at = None, time.monotonic()
    while not readers.ending:
        try:
            beat = await pulse.read(database)
        except UnavailableError:
            beat = "away"
        if beat != last:
            # the first one too: something may have happened since the page was rendered
            yield "event: news\ndata:\n\n"
            last, said_at = beat, time.monotonic()
        elif time.monotonic() - said_at > COMMENT_SECONDS:
            yield ": still there\n\n"
            said_at = time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)
