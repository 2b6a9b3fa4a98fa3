"""Two releases on one database: processes of this release, while a later one migrates it, serves, and takes over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from support.later_release import LATER, STILL_LATER, LaterRelease
from support.real_door import answering
from support.real_services import free_port, wait_until
from support.real_workers import Deployment
from support.refusals import refused

from onboard.api.app import create_app
from onboard.bases import Base
from onboard.client import Onboard
from onboard.domain.access import ALL_SCOPES
from onboard.domain.job import Job, JobState
from onboard.operations.access import create_token
from onboard.operations.gc import collect_garbage
from onboard.registry import schema
from onboard.registry.jobs import JobRepository
from onboard.registry.services import open_services
from onboard.settings import Settings

pytestmark = pytest.mark.timeout(600)  # each starts several programs, one after the other


@pytest.fixture(params=["embedded", pytest.param("grown", marks=pytest.mark.services)])
def ours(request: pytest.FixtureRequest, tmp_path: Path, tiny_base: Base) -> Iterator[Deployment]:
    """This release, on a database that no other test uses."""
    settings = {"home": tmp_path / "home", "base": str(tiny_base.folder), "device": "cpu", "start_worker": False}
    if request.param == "grown":
        settings["database_url"] = request.getfixturevalue("postgres").create(f"two_releases_{uuid.uuid4().hex}")
        settings["broker_url"] = request.getfixturevalue("redis_url")
        schema.upgrade(str(settings["database_url"]))
    with Deployment(Settings.model_validate(settings), tmp_path) as deployment:
        yield deployment


@pytest.fixture
def later(ours: Deployment, tmp_path: Path) -> LaterRelease:
    return LaterRelease(tmp_path / "later", ours.settings)


@pytest.fixture
def token(ours: Deployment) -> str:
    return create_token(ours.services.database, "tests", [scope.value for scope in ALL_SCOPES])[1]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.csv"
    lines = [f"a {word} film number {number},{word}" for number in range(8) for word in ("good", "bad")]
    file.write_text("\n".join(["text,label", *lines]) + "\n")
    return file


def learned(ours: Deployment, client: Onboard, rows: Path, task: str) -> Job:
    """The job that learned a task, submitted through this client's API, as soon as it has ended."""
    submitted = client.submit(rows, task)
    with ours.services.database.read() as session:
        job = JobRepository(session).get(submitted.id)
    done = ours.finished(job)
    assert done.state is JobState.SUCCEEDED, done.error
    return done


def test_workers_and_api_of_this_release_go_on_while_a_later_one_migrates_and_serves(
    ours: Deployment, later: LaterRelease, token: str, rows: Path
) -> None:
    database, port = ours.services.database, free_port()
    worker = ours.start_worker(lease_seconds=60.0)
    with answering(create_app(ours.settings)) as here, Onboard(f"http://127.0.0.1:{here}", token) as present:
        learned(ours, present, rows, "before")
        for _ in range(8):  # so that the server has prepared these statements before their tables change
            assert "before" in {task.name for task in present.tasks()}
            present.jobs()

        assert LATER in later.run("db", "upgrade")
        assert schema.check(database.url) == schema.upgrade(database.url) == LATER
        assert httpx.get(f"http://127.0.0.1:{here}/readyz").status_code == 200
        assert learned(ours, present, rows, "between").worker == worker.name

        with later.serving("serve", "--port", str(port), "--no-worker"):
            address = f"http://127.0.0.1:{port}"
            wait_until(lambda: answers(address), 240, "the API of the later release")
            with Onboard(address, token) as new:
                assert new.me().onboard.startswith("99.")
                done = learned(ours, new, rows, "after")
                assert (done.worker, done.needs_release) == (worker.name, ours.job(done).needs_release)
                for client in (present, new):
                    assert {"before", "between", "after"} <= {task.name for task in client.tasks()}
                    assert client.report(done.id).version == 1
                    assert [version.version for version in client.versions("after")] == [1]

        with database.read() as session:
            colours = dict(session.execute(text("SELECT task, colour FROM jobs")).all())
        assert colours == {"before": None, "between": None, "after": "blue"}
        with closing(open_services(ours.settings)) as newly_started, refused("schema-ahead"):
            collect_garbage(newly_started)


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("rename", [False, True])
def test_processes_of_this_release_leave_when_a_later_one_takes_something_away_and_no_job_is_lost(
    ours: Deployment, later: LaterRelease, rename: bool
) -> None:
    later.contract(rename=rename)
    worker = ours.start_worker()
    job = ours.submit(hang="alone", hang_until_attempt=2)
    ours.running(job)
    with answering(create_app(ours.settings)) as here:
        assert STILL_LATER in later.run("db", "upgrade")
        assert worker.exit_code() == 0
        said = worker.log.read_text()
        assert f"schema ({STILL_LATER}) is newer than this code" in said
        assert ("Returned to the queue" in said) is not rename  # which needs the column
        refusal = httpx.get(f"http://127.0.0.1:{here}/readyz")
        assert (refusal.status_code, refusal.json()["found"]) == (503, STILL_LATER)
    with refused("schema-too-new"):
        open_services(ours.settings)
    ours.start_worker(modules=later.folder)
    wait_until(lambda: state_of(ours, job) == (2, "succeeded"), 120, ours.workers[-1].log.read_text())


def state_of(ours: Deployment, job: Job) -> tuple[int, str]:
    with ours.services.database.read() as session:
        attempt, state = session.execute(text("SELECT attempt, state FROM jobs WHERE id = :id"), {"id": job.id}).one()
        return attempt, state
