"""A worker gets SIGTERM, as from Kubernetes, at every stage of a job; the next worker goes on, and nothing is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.pausing_pipeline import paused_at
from support.real_jobs import Desk, opinions
from support.real_services import wait_until
from support.real_workers import Deployment

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.hypernetworks.register import register_base
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings

STAGES = ["check", "probe", "train", "tune", "guard", "evaluate", "publish"]
PATIENT = {"lease_seconds": 60.0, "cancel_seconds": 30.0}  # a busy machine must not look like a lost worker


@pytest.mark.timeout(600)
def test_a_job_whose_workers_are_stopped_at_every_stage_is_published_once(tmp_path: Path, tiny_base: Base) -> None:
    settings = Settings(home=tmp_path / "home", base=str(tiny_base.folder), device="cpu", start_worker=False)
    home = settings.resolved_home
    with Deployment(settings, tmp_path) as deployment:
        register_base(deployment.services, tiny_base)
        submitted = Desk(deployment.services, tmp_path).submit(
            opinions(30), init="sst2", tune_hypernetwork="always", readout="never"
        )
        for stopped in range(len(STAGES)):
            worker = deployment.start_worker(pipeline="support.pausing_pipeline", drain_seconds=0.2, **PATIENT)
            wait_until(
                lambda seen=stopped: len(paused_at(home)) > seen,
                120,
                f"stage {STAGES[stopped]}: {worker.log.read_text()}",
            )
            before = deployment.job(submitted)
            worker.signal(signal.SIGTERM)
            assert worker.exit_code() == 0
            job = deployment.job(submitted)
            assert (job.state, job.worker, job.attempt) == (JobState.QUEUED, None, before.attempt)
            assert job.max_attempts == before.max_attempts + 1  # no attempt is used up
        assert paused_at(home) == STAGES
        last = deployment.start_worker(pipeline="support.pausing_pipeline", **PATIENT)
        done = deployment.finished(submitted)
        assert (done.state, done.worker) == (JobState.SUCCEEDED, last.name)
        with deployment.services.database.read() as session:
            versions = VersionRepository(session).list(task="mood")
        assert [(version.version, version.job) for version in versions] == [(1, submitted.id)]
