"""An alias that moves over HTTP starts a worker on the embedded default, if webhooks are to tell of it."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.registry.services import Services


@pytest.mark.parametrize("url", ["", "https://hooks.example.com/onboard"])
def test_a_worker_is_started_where_somebody_is_told(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("ONBOARD_WEBHOOK_URLS", url)
    monkeypatch.setenv("ONBOARD_WEBHOOK_HOSTS", "hooks.example.com")
    monkeypatch.setenv("ONBOARD_WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    services: Services = request.getfixturevalue("tiny_services")  # which reads the settings
    base: Base = request.getfixturevalue("tiny_base")
    app: FastAPI = request.getfixturevalue("app")
    door: TestClient = request.getfixturevalue("door")
    for seed in (1, 2):
        add_version(services, base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(seed))
    moved = door.put("/v1/tasks/mood/aliases/latest", json={"version": 1}, headers={"If-Match": '"v2"'})
    assert moved.raise_for_status().json()["version"] == 1
    assert app.state.started == (["default"] if url else [])
    door.post("/v1/tasks/mood/aliases/latest/rollback", headers={"If-Match": '"v1"'}).raise_for_status()
    assert app.state.started == (["default"] * 2 if url else [])
