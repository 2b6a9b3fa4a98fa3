"""Real workers whose process cannot come up, or cannot load its base: they say why, and take no jobs from others."""

from __future__ import annotations

import re
import time
from pathlib import Path

from support.real_services import wait_until
from support.real_workers import Deployment

from onboard.domain.job import JobState
from onboard.domain.worker import WorkerRecord
from workers.leaving import FAULTY_EXIT


def only_row(deployment: Deployment) -> WorkerRecord:
    (row,) = deployment.rows()
    return row


def test_a_worker_whose_process_ends_before_it_is_ready_leaves_and_repeats_what_it_said(
    deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif '--billiard-fork' in sys.orig_argv:\n    sys.exit('half of the installation is gone')\n"
    )
    job = deployment.submit()
    worker = deployment.start_worker(modules=tmp_path)
    assert worker.exit_code() == FAULTY_EXIT
    log = worker.log.read_text()
    assert re.search(
        r"exited before it was ready \(\d+ times? in a row\)\. It said: .*half of the installation is gone", log
    )
    assert deployment.job(job).state is JobState.QUEUED
    assert only_row(deployment).facts["trouble"]["stops"]


def test_a_worker_that_cannot_load_its_base_takes_no_job_until_it_can(deployment: Deployment) -> None:
    broken = deployment.settings.resolved_home / "broken"
    broken.parent.mkdir(exist_ok=True)
    broken.touch()
    alive = deployment.folder / "alive"
    job = deployment.submit()
    worker = deployment.start_worker(alive_file=alive)
    wait_until(lambda: only_row(deployment).shown_state == "faulty", what=f"it to say so: {worker.log.read_text()}")
    touched = alive.stat().st_mtime
    time.sleep(1.5)
    assert alive.stat().st_mtime == touched, "a health check sees it too"
    assert (deployment.job(job).state, deployment.job(job).attempt) == (JobState.QUEUED, 0)
    broken.unlink()
    assert deployment.finished(job).state is JobState.SUCCEEDED
    wait_until(lambda: only_row(deployment).trouble is None, what="the trouble to be over")
    assert alive.stat().st_mtime > touched
    assert worker.process.poll() is None
