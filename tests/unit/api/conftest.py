"""The door to a fresh home on the tiny base, and who knocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.callers import bearer
from support.guarded_door import opened
from support.published import add_version, embedding_of

from onboard.api.app import create_app
from onboard.bases import Base
from onboard.domain.access import ALL_SCOPES, Scope
from onboard.domain.worker import WorkerState
from onboard.operations import access
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository


@pytest.fixture
def app(tiny_services: Services, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The application; no worker is started for it."""
    started: list[str] = []
    for module in (
        "onboard.api.routes.jobs", "onboard.api.routes.changes", "onboard.api.pages.changes",
        "onboard.api.pages.submit", "onboard.api.labelling", "onboard.jobs.waking",
    ):  # fmt: skip
        monkeypatch.setattr(f"{module}.start_worker", lambda services, queue: started.append(queue))
    app = create_app(tiny_services.settings)
    app.state.started = started
    return app


@pytest.fixture
def door(app: FastAPI, tiny_services: Services) -> Iterator[TestClient]:
    """A client with a token of every scope."""
    headers = bearer(tiny_services.database, *ALL_SCOPES, name="tester")
    with TestClient(app, "http://localhost", headers=headers, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def client(tiny_services: Services) -> Iterator[TestClient]:
    """A client without a token, at the door with its guard."""
    with opened(tiny_services) as client:
        yield client


@pytest.fixture
def token(tiny_services: Services) -> dict[str, str]:
    """The headers of a caller who may do everything."""
    return bearer(tiny_services.database, *Scope)


@pytest.fixture
def rows() -> bytes:
    """A small dataset of two labels."""
    return b"".join(
        b'{"text": "%s day number %d", "label": "%s"}\n' % (word, number, label)
        for number in range(20)
        for word, label in ((b"sunny", b"good"), (b"rainy", b"bad"))
    )


@pytest.fixture
def stage(tiny_services: Services, tiny_base: Base) -> Services:
    """A task with two versions, and a worker."""
    for seed in (1, 2):
        add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(seed))
    with tiny_services.database.write() as session:
        WorkerRepository(session).enter("w1", WorkerState.RUNNING, queues=["default"], host="there", device="cpu")
    return tiny_services


@pytest.fixture
def new_lines(stage: Services) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What was written to the log of changes since the last call, oldest first."""
    seen = {change["id"] for change in access.changes(stage.database, 1000)["changes"]}

    def lines() -> list[dict[str, Any]]:
        fresh = [change for change in access.changes(stage.database, 1000)["changes"] if change["id"] not in seen]
        seen.update(change["id"] for change in fresh)
        return fresh[::-1]

    yield lines
    assert lines() == []  # and nothing else was
