"""The door with its guard, to somebody who has no token yet."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from onboard.api.app import create_app
from onboard.registry.services import Services

HERE = {"Origin": "http://localhost"}
JOBS, PAUSE = "/v1/jobs", "/v1/queue/pause"


def opened(services: Services, **changes: Any) -> TestClient:
    settings = services.settings.model_copy(update={"start_worker": False, **changes})
    return TestClient(
        create_app(settings), "http://localhost", follow_redirects=False, raise_server_exceptions=False,
    )  # fmt: skip
