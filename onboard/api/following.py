"""A job's events as server-sent events; a client that reconnects continues after the last event it received."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from onboard.api.guarding import identified
from onboard.api.places import RequestPlaces
from onboard.api.remedies import event_over_http, job_over_http
from onboard.contract.jobs import JobEventDocument
from onboard.domain.access import Identity
from onboard.errors import SignInError, UnavailableError
from onboard.jobs.control import brief, news_of
from onboard.operations.access import note_use
from onboard.registry.database import Database
from onboard.registry.services import Services

MOST_READERS: Final = 200
POLL_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 2.0
COMMENT_SECONDS: Final = 15.0  # proxies close idle connections
PAGE: Final = 500
IDENTIFY_SECONDS: Final = 14.0  # something is sent every 15 s: a revoked token is noticed within half a minute


def event_stream(texts: AsyncIterator[str]) -> StreamingResponse:
    """Return a response that sends server-sent events without caching or buffering."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(texts, media_type="text/event-stream", headers=headers)


def identifying(request: Request) -> Callable[[], Awaitable[object]]:
    """Return a function that authenticates again and keeps the session alive. Raises SignInError, UnavailableError."""
    services: Services = request.app.state.services

    async def identify() -> Identity:
        identity = await identified(services, request.headers)
        if identity.use_due:
            await run_in_threadpool(note_use, services.database, identity)
        return identity

    return identify


async def while_signed_in(texts: AsyncIterator[str], identify: Callable[[], Awaitable[object]]) -> AsyncIterator[str]:
    """Yield texts until the token ends; reconnecting clients are refused then."""
    asked_at = time.monotonic()
    async for text in texts:
        if time.monotonic() - asked_at > IDENTIFY_SECONDS:
            try:
                await identify()
            except SignInError:
                return
            except UnavailableError:
                yield ": the database is away\n\n"  # and send the text anyway: it is not repeated
            else:
                asked_at = time.monotonic()
        yield text


class Readers:
    """Counts the clients that follow jobs. Only for the event loop."""

    def __init__(self, most: int = MOST_READERS) -> None:
        self._places = RequestPlaces(
            most, "Too many event streams are open.", "Try again later, or poll the job instead."
        )
        self._ending = False

    @property
    def present(self) -> int:
        """Current number of streams."""
        return self._places.held

    def place(self) -> AbstractContextManager[None]:
        """Reserve a place. Raises UnavailableError, RateLimitError: there is none, or none for this token."""
        return self._places.place()

    def end(self) -> None:
        """End all streams soon, as the service shuts down. Clients reconnect elsewhere."""
        self._ending = True

    @property
    def ending(self) -> bool:
        """Whether the service shuts down."""
        return self._ending

    def follow(self, database: Database, job_id: str, since: int) -> AsyncIterator[str]:
        """Yield the events after `since` as they occur, and event `end` with the job once it has ended."""
        return _follow(database, job_id, since, lambda: self._ending)


async def _reading(request: Request) -> AsyncIterator[Readers]:
    """Reserve a place until the stream has ended, even if it never starts."""
    readers: Readers = request.app.state.readers
    with readers.place():
        yield readers


Reading = Annotated[Readers, Depends(_reading)]


async def _follow(database: Database, job_id: str, since: int, ending: Callable[[], bool]) -> AsyncIterator[str]:
    said_at = time.monotonic()
    while not ending():
        try:
            job, events = await run_in_threadpool(news_of, database, job_id, since, PAGE)
        except UnavailableError:
            yield ": the database is away\n\n"
            await asyncio.sleep(AWAY_SECONDS)
            continue
        for event in events:
            since = event.id
            document = event_over_http(JobEventDocument.of(event).to_json())
            yield f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(document)}\n\n"
        if len(events) == PAGE:
            continue
        if job.state.finished:
            yield f"event: end\ndata: {json.dumps(job_over_http(brief(job)))}\n\n"
            return
        if events:
            said_at = time.monotonic()
        elif time.monotonic() - said_at > COMMENT_SECONDS:
            said_at = time.monotonic()
            yield ": still there\n\n"
        await asyncio.sleep(POLL_SECONDS)
