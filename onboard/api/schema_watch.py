"""Notice that a later release has changed the schema so that this server must not answer any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.concurrency import run_in_threadpool

from onboard.errors import ConflictError, OnboardError, UnavailableError
from onboard.registry.database import Database
from onboard.registry.schema import require_still_fitting

LOOK_SECONDS: Final = 5.0
_logger = logging.getLogger(__name__)


class SchemaWatch:
    """Looks at the schema every few seconds.

    Attributes:
        refusal: the answer to all requests, once the schema has changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.refusal: UnavailableError | None = None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look until the end of the block."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while self.refusal is None:
            await asyncio.sleep(LOOK_SECONDS)
            await run_in_threadpool(self._look)

    def _look(self) -> None:
        try:
            require_still_fitting(self._database)
        except ConflictError as error:
            _logger.error("%s %s This server answers 503 until then.", error.message, error.remedy)
            self.refusal = UnavailableError.like(error)
        except OnboardError:  # requests report that the database is away
            return
