"""The door to a fresh home on the tiny base, and who knocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.callers import bearer

from onboard.api.app import create_app
from onboard.domain.access import ALL_SCOPES
from onboard.services import Services


@pytest.fixture
def app(tiny_services: Services, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The application; no worker is started for it."""
    started: list[str] = []
    monkeypatch.setattr("onboard.api.routes.jobs.start_worker", lambda services, queue: started.append(queue))
    monkeypatch.setattr("workers.waking.start_worker", lambda services, queue: started.append(queue))
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
def rows() -> bytes:
    """A small dataset of two labels."""
    return b"".join(
        b'{"text": "%s day number %d", "label": "%s"}\n' % (word, number, label)
        for number in range(20)
        for word, label in ((b"sunny", b"good"), (b"rainy", b"bad"))
    )
