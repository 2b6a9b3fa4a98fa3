"""A job's events as server-sent events: a reader that was cut off goes on after the last one that it has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from onboard.api.guarding import identified
from onboard.api.remedies import event_over_http, job_over_http
from onboard.errors import SignInError, UnavailableError
from onboard.jobs.control import brief, news_of
from onboard.registry.database import Database

MOST_READERS: Final = 200
POLL_SECONDS: Final = 0.5
AWAY_SECONDS: Final = 2.0
COMMENT_SECONDS: Final = 15.0  # proxies close connections on which nothing comes
PAGE: Final = 500
IDENTIFY_SECONDS: Final = 14.0  # something is sent every 15: a token that was revoked is noticed within half a minute


def event_stream(texts: AsyncIterator[str]) -> StreamingResponse:
    """The answer that sends server-sent events as they come: nobody on the way keeps them, or gathers them first."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(texts, media_type="text/event-stream", headers=headers)


def identifying(request: Request) -> Callable[[], Awaitable[object]]:
    """Says again who asks. Raises SignInError, UnavailableError."""
    return partial(identified, request.app.state.services, request.headers)


async def while_signed_in(texts: AsyncIterator[str], identify: Callable[[], Awaitable[object]]) -> AsyncIterator[str]:
    """What comes, until the token that it is for is over: who comes again then is refused."""
    asked_at = time.monotonic()
    async for text in texts:
        if time.monotonic() - asked_at > IDENTIFY_SECONDS:
            try:
                await identify()
            except SignInError:
                return
            except UnavailableError:
                yield ": the database is away\n\n"
                continue
            asked_at = time.monotonic()
        yield text


class Readers:
    """How many follow a job just now. Used on the event loop only."""

    def __init__(self, most: int = MOST_READERS) -> None:
        self._most = most
        self._present = 0
        self._ending = False

    def end(self) -> None:
        """Let all streams end within a moment, as the service leaves. Their readers come again, and go on elsewhere."""
        self._ending = True

    @property
    def ending(self) -> bool:
        """Whether the service leaves."""
        return self._ending

    def require_room(self) -> None:
        """Raise UnavailableError when too many read already."""
        if self._present >= self._most:
            raise UnavailableError("Too many follow jobs.", "Try again later, or ask for the job now and then.")

    def follow(self, database: Database, job_id: str, since: int) -> AsyncIterator[str]:
        """The events above `since` as they come, and the job itself as event `end` once it has ended."""
        return self.present(_follow(database, job_id, since, lambda: self._ending))

    async def present(self, texts: AsyncIterator[str]) -> AsyncIterator[str]:
        """What comes, to a reader who counts among those who follow."""
        self._present += 1
        try:
            async for text in texts:
                yield text
        finally:
            self._present -= 1


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
            yield f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(event_over_http(event.to_json()))}\n\n"
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
