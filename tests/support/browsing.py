"""Somebody who looks at the pages in a browser, as far as that can be had without one."""

from __future__ import annotations

from typing import Any, Final

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from onboard.api.app import create_app
from onboard.domain.job import JobState
from onboard.operations.access import create_token, sign_in
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.settings import Settings
from support.registry_samples import add_job, claim_job

HTML: Final = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
EVIL: Final = "<script>alert('x')</script>\"'"


def app_without_base(services: Services, monkeypatch: pytest.MonkeyPatch, settings: Settings | None = None) -> FastAPI:
    """The application; no base is looked for, as pages need none until somebody asks for predictions."""
    monkeypatch.setattr("onboard.api.app.find_base", lambda _: None)
    monkeypatch.setattr("onboard.api.app.register_base", lambda *_: None)
    monkeypatch.setattr("onboard.jobs.waking.start_worker", lambda *_: False)
    monkeypatch.setattr("onboard.api.pages.submit.start_worker", lambda *_: False)
    return create_app(settings or services.settings)


def signed_in(app: FastAPI, database: Database, *scopes: str) -> TestClient:
    """A browser with a session of these scopes; leave it as a context."""
    secret = create_token(database, "tester", list(scopes))[1]
    client = TestClient(app, "http://localhost", headers=HTML, follow_redirects=False, raise_server_exceptions=False)
    client.cookies.set("onboard_session", sign_in(database, secret))
    return client


def fail(database: Database, task: str, message: str, **error: Any) -> str:
    """The id of a job that failed with this message."""
    add_job(database, task, priority=1000)
    job = claim_job(database)
    document = {"code": "dataset", "message": message, "remedy": "Mend `it`.", **error}
    with database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, JobState.FAILED, error=document)
    return job.id


def without_quoted_scripts(page: str) -> str:
    """The page, once it was seen that what users wrote stands on it as text and nowhere as markup."""
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    return page
