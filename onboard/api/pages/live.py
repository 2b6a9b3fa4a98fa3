"""Notify open pages of events by server-sent events.

The overview gets its live part, which is rendered once for all users with the same rights; other pages reload theirs.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from functools import partial
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.following import COMMENT_SECONDS, Readers, Reading, event_stream, identifying, while_signed_in
from onboard.api.pages.frame import rendered
from onboard.api.pages.overview import Overview
from onboard.api.routes.jobs import JobId
from onboard.domain.access import Identity, Scope
from onboard.errors import UnavailableError
from onboard.jobs.control import find_job
from onboard.jobs.status import pulse
from onboard.registry.database import Database

_AWAY: Final = "away"
_NEWS: Final = "event: news\ndata:\n\n"
LOOK_SECONDS: Final = 0.7  # interval of checks, and maximum age of cached data: together under two seconds
AGE_SECONDS: Final = 10.0  # displayed ages grow even without events
_READ: Final = [Depends(requires(Scope.READ))]
Say = Callable[[], Awaitable[str]]

router = APIRouter(include_in_schema=False)


class ServicePulse:
    """The current pulse of the service with rendered parts of pages, each made once per `LOOK_SECONDS` for all open
    pages.

    Only for the event loop.

    Attributes:
        read_at: when the pulse was read, by `time.monotonic`.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.read_at = -LOOK_SECONDS
        self._beat = ""
        self._parts: dict[Hashable, tuple[float, str]] = {}

    async def read(self, database: Database) -> str:
        """Return the recent result of `onboard.jobs.status.pulse`. Raises UnavailableError."""
        async with self._lock:
            if time.monotonic() - self.read_at >= LOOK_SECONDS:
                self._beat = await run_in_threadpool(pulse, database)
                self.read_at = time.monotonic()
            return self._beat

    async def part(self, readers: Hashable, make: Callable[[], str]) -> str:
        """Return a part of a page, no older than the pulse.

        Args:
            readers: users with the same content.
            make: renders it, in a thread.
        """
        async with self._lock:
            made_at, text = self._parts.get(readers, (-1.0, ""))
            if made_at < self.read_at:
                text = await run_in_threadpool(make)
                self._parts[readers] = (time.monotonic(), text)
            return text


@router.get("/live")
async def follow_all(
    request: Request,
    services: OpenServices,
    readers: Reading,
    identity: Annotated[Identity, Depends(requires(Scope.READ))],
    of: Annotated[Literal["", "overview"], Query()] = "",
) -> StreamingResponse:
    """Send an event `news` after every change of a job, worker or queue; for the overview, its live part."""
    heart: ServicePulse = request.app.state.pulse

    async def part() -> str:
        make = partial(_overview, request, services.database, heart)
        return f"event: part\ndata: {await heart.part(identity.scopes, make)}\n\n"

    how = (part, AGE_SECONDS) if of else (_news, math.inf)
    beats = _beats(heart, services.database, readers, *how)
    return event_stream(while_signed_in(beats, identifying(request)))


@router.get("/live/{job}", dependencies=_READ)
def follow_one(
    job: JobId,
    request: Request,
    services: OpenServices,
    readers: Reading,
    since: Annotated[int, Query(ge=0, lt=2**53)] = 0,
) -> StreamingResponse:
    """Send the events of a job after `since`, like `/v1/jobs/{job}/events`."""
    events = readers.follow(services.database, find_job(services.database, job).id, since)
    return event_stream(while_signed_in(events, identifying(request)))


def _overview(request: Request, database: Database, heart: ServicePulse) -> str:
    overview: Overview = request.app.state.overview
    document = overview.read(database, since=heart.read_at)  # shared, independent of rights
    return json.dumps(rendered(request, "overview_part.html", document=document))


async def _news() -> str:
    return _NEWS


async def _beats(
    pulse: ServicePulse, database: Database, readers: Readers, say: Say = _news, again_seconds: float = math.inf
) -> AsyncIterator[str]:
    """Yield the result of `say` at once, after every event, and after some time without."""
    last, said_at = None, time.monotonic()
    while not readers.ending:
        try:
            beat = await pulse.read(database)
            if beat != last or time.monotonic() - said_at > again_seconds:
                # also the first one: something may have happened since the page was rendered
                yield await say()
                last, said_at = beat, time.monotonic()
        except UnavailableError:
            if last != _AWAY:
                yield _NEWS
                last, said_at = _AWAY, time.monotonic()
        if time.monotonic() - said_at > COMMENT_SECONDS:
            yield ": still there\n\n"
            said_at = time.monotonic()
        await asyncio.sleep(LOOK_SECONDS)
