"""The door to a fresh home without a base: pages need none until somebody asks for predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import app_without_base, signed_in

from onboard.domain.access import ALL_SCOPES, Scope
from onboard.registry.services import Services, open_services
from onboard.settings import Settings
from onboard.testing import MemoryDoorbell


@pytest.fixture
def services(tmp_path: Path, _sqlite_template: Path) -> Iterator[Services]:
    """The embedded default in a fresh home."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "onboard.db").write_bytes(_sqlite_template.read_bytes())
    services = open_services(Settings(home=home))
    yield services
    services.close()


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> MemoryDoorbell:
    """The bell of the queues, which nobody hears."""
    bell = MemoryDoorbell()
    monkeypatch.setattr("onboard.jobs.waking.doorbell", lambda *_, **__: bell)
    return bell


@pytest.fixture
def page_app(services: Services, rung: MemoryDoorbell, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The application; no base is looked for."""
    return app_without_base(services, monkeypatch)


@pytest.fixture
def browser(page_app: FastAPI, services: Services) -> Iterator[TestClient]:
    """Somebody who may everything."""
    with signed_in(page_app, services.database, *ALL_SCOPES) as client:
        yield client


@pytest.fixture
def reader(page_app: FastAPI, services: Services) -> Iterator[TestClient]:
    """Somebody who may only read."""
    with signed_in(page_app, services.database, Scope.READ) as client:
        yield client
