"""The first page, for operators: queues, workers, running and waiting jobs, and recent failures."""

from __future__ import annotations

import math
import threading
import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import Response

from onboard.api.access import requires, signed_in
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import CameFrom, page, to
from onboard.api.quotas import quota_document
from onboard.contract.jobs import NAME
from onboard.contract.versions import VersionDocument
from onboard.domain.access import Identity, Scope, sorted_scopes
from onboard.domain.names import MOST_LETTERS
from onboard.jobs.control import drain, set_paused
from onboard.jobs.status import Lately, service
from onboard.jobs.waking import wake
from onboard.registry.database import Database
from onboard.report.versions import measured_text

_FRESH_SECONDS: Final = 1.0
_MOST_WAITING: Final = 10  # jobs listed
_READ: Final = [Depends(requires(Scope.READ))]
_OPS: Final = [Depends(requires(Scope.OPS))]
QueueName = Annotated[str, Form(pattern=NAME, max_length=MOST_LETTERS)]
WorkerName = Annotated[str, Form(max_length=200)]

router = APIRouter(include_in_schema=False)


class Overview:
    """The overview's document, read at most once a second for all open pages. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun_at = self._read_at = -_FRESH_SECONDS
        self._document: dict[str, Any] = {}
        self._lately = Lately()

    def read(self, database: Database, since: float = -math.inf) -> dict[str, Any]:
        """Return the document, at most a second old.

        Args:
            since: it must be read after this time of `time.monotonic`.
        """
        with self._lock:
            begun_at = time.monotonic()
            if begun_at - self._read_at >= _FRESH_SECONDS or self._begun_at < since:
                self._document = _document(database, self._lately)
                self._begun_at, self._read_at = begun_at, time.monotonic()
            return self._document

    def forget(self) -> None:
        """Read it again next time, as somebody changed something and looks at the result."""
        with self._lock:
            self._read_at = -_FRESH_SECONDS


@router.get("/overview.json", dependencies=_READ)
def read_overview(request: Request, services: OpenServices) -> Response:
    """Return the overview as a document."""
    return page(request, "overview.html", _overview(request).read(services.database))


@router.get("/")
def show_start(request: Request, services: OpenServices, identity: Annotated[Identity, Depends(signed_in)]) -> Response:
    """Show the overview; users who may not read it see what they may do."""
    if not identity.may(Scope.READ):
        quota = quota_document(services, identity.name)
        return page(request, "start.html", {"scopes": sorted_scopes(identity.scopes), "quota": quota})
    return page(request, "overview.html", _overview(request).read(services.database))


@router.post("/queue/pause", dependencies=_OPS)
def pause_queue(request: Request, services: OpenServices, queue: QueueName, back: CameFrom) -> Response:
    """Pause a queue."""
    set_paused(services.database, queue, paused=True)
    return _changed(request, back)


@router.post("/queue/resume", dependencies=_OPS)
def resume_queue(request: Request, services: OpenServices, queue: QueueName, back: CameFrom) -> Response:
    """Resume a queue."""
    set_paused(services.database, queue, paused=False)
    wake(services, queue, outside=True)
    return _changed(request, back)


@router.post("/workers/drain", dependencies=_OPS)
def drain_worker(request: Request, services: OpenServices, worker: WorkerName, back: CameFrom) -> Response:
    """Let a worker finish its job and exit."""
    drain(services.database, worker)
    return _changed(request, back)


def _overview(request: Request) -> Overview:
    overview: Overview = request.app.state.overview
    return overview


def _changed(request: Request, back: str) -> Response:
    _overview(request).forget()
    return to(back)


def _document(database: Database, lately: Lately) -> dict[str, Any]:
    seen = service(database, _MOST_WAITING, lately)
    versions = [VersionDocument.of(version).to_json() for version in seen.versions]
    return {
        **seen.queues.to_json(),
        "workers": seen.workers.to_json()["workers"],
        "jobs": seen.jobs.to_json(),
        "failures": [group.to_json() for group in seen.failures],
        "hours": [hour.to_json() for hour in seen.hours],
        "versions": [{**version, "result": measured_text(version)} for version in versions],
    }
