"""Attempts that crash, meet a full disk or lose their job: the next one goes on, and nothing is published twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.few_steps import learn_in_few_steps
from support.full_disk import full
from support.real_jobs import STAGES, CrashError, Desk, HookedProgress, crash_after, opinions
from support.refusals import refused

from onboard.bases import Base
from onboard.contract.jobs import JobEventDocument
from onboard.domain.job import Job, JobState, Stage
from onboard.domain.progress import Progress
from onboard.errors import FencedError, StorageError
from onboard.hypernetworks.register import register_base
from onboard.pipeline import probe as probing
from onboard.pipeline import run as pipeline
from onboard.pipeline import train as training
from onboard.pipeline.check import prepare
from onboard.registry.claims import ClaimRepository
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.tables import JobRow, StageOutputRow
from onboard.testing import RecordedProgress
from workers.shell import work


def test_a_second_attempt_goes_on_after_the_last_finished_stage(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = desk.submit(opinions(24), init="sst2")
    first = desk.claim()
    with pytest.raises(CrashError):
        desk.run(first, crash_after("probe"))
    desk.lose()
    second = desk.claim()
    assert (second.id, second.attempt) == (job.id, 2)
    monkeypatch.setattr(probing, "measure_named", _never)
    progress = RecordedProgress()
    result = desk.run(second, progress).result
    assert progress.stages == ["check", "train", "evaluate"]
    assert result is not None
    assert result["version"] == 1
    assert len(desk.versions("mood")) == 1
    assert set(result["seconds"]) == {*STAGES, "publish"}
    monkeypatch.undo()
    learn_in_few_steps(monkeypatch)
    undisturbed = desk.learn(opinions(24), "undisturbed", init="sst2")
    assert undisturbed["embedding_digest"] == result["embedding_digest"]


def test_an_attempt_that_died_while_publishing_leaves_nothing_and_the_next_only_publishes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(opinions(24))
    with pytest.raises(CrashError):
        desk.run(desk.claim(), HookedProgress(lambda what, name: _crash_at(what, name, "publish")))
    assert desk.jobs()[0].state is JobState.RUNNING
    desk.lose()
    for room, work_ in ((probing, "measure_named"), (training, "learn"), (pipeline, "judge")):
        monkeypatch.setattr(room, work_, _never)
    assert desk.run(desk.claim()).state is JobState.SUCCEEDED
    assert [version.version for version in desk.versions("mood")] == [1]


def _crash_at(what: str, name: str, stage: str) -> None:
    if (what, name) == ("started", stage):
        raise CrashError


def _never(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("this stage had finished before")


def test_a_stored_output_that_is_damaged_or_gone_is_made_again(desk: Desk, tiny_services: Services) -> None:
    for number, harm in enumerate((_damage, _remove)):
        desk.submit(opinions(24), f"task{number}")
        with pytest.raises(CrashError):
            desk.run(desk.claim(), crash_after("train"))
        desk.lose()
        harm(tiny_services)
        progress = RecordedProgress()
        assert desk.run(desk.claim(), progress).state is JobState.SUCCEEDED
        assert progress.stages == STAGES


def _outputs(services: Services) -> Iterator[Path]:
    for path in (services.settings.resolved_home / "artifacts").rglob("*"):
        if path.is_file() and path.read_bytes().startswith(b'{"z"'):
            yield path


def _damage(services: Services) -> None:
    for path in _outputs(services):
        path.write_bytes(path.read_bytes()[:-9])


def _remove(services: Services) -> None:
    for path in _outputs(services):
        path.unlink()


def test_a_stored_output_of_another_form_is_made_again(desk: Desk, tiny_services: Services) -> None:
    for number, change in enumerate((_without_folds, _with_more)):
        desk.submit(opinions(24), f"task{number}")
        with pytest.raises(CrashError):
            desk.run(desk.claim(), crash_after("train"))
        desk.lose()
        _rewrite(tiny_services, Stage.TRAIN, change)
        progress = RecordedProgress()
        assert desk.run(desk.claim(), progress).state is JobState.SUCCEEDED
        assert progress.stages == ["check", "train", "evaluate"]


def _without_folds(document: dict[str, Any]) -> None:
    del document["folds"]


def _with_more(document: dict[str, Any]) -> None:
    document["of_a_later_program"] = True


def _rewrite(services: Services, stage: Stage, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the stage left in the last job."""
    of_stage = select(StageOutputRow).where(StageOutputRow.stage == stage).order_by(StageOutputRow.created_at.desc())
    with services.database.read() as session:
        key, job, artifact = next((row.key, row.job, row.artifact) for row in session.scalars(of_stage))
    document = json.loads(services.artifacts.get(artifact))
    change(document)
    artifact = services.store(json.dumps(document).encode(), "stage_output")
    with services.database.write() as session:
        StageOutputRepository(session).put(key, job, stage, artifact)


def test_a_start_that_comes_out_differently_is_trained_from_anew(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    _starting_from(monkeypatch, "stsb@v1")
    undisturbed = desk.learn(opinions(24), "undisturbed")
    _starting_from(monkeypatch, "sst2@v1")
    desk.submit(opinions(24))
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after("train"))
    desk.lose()
    _damage_probed(desk.services)
    _starting_from(monkeypatch, "stsb@v1")
    progress = RecordedProgress()
    result = desk.run(desk.claim(), progress).result or {}
    assert progress.stages == STAGES
    assert desk.version("mood@v1").parent == desk.version("undisturbed@v1").parent == "stsb@v1"
    assert result["embedding_digest"] == undisturbed["embedding_digest"]


def test_a_start_that_comes_out_alike_has_been_trained_from(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.submit(opinions(24))
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after("train"))
    desk.lose()
    _damage_probed(desk.services)
    monkeypatch.setattr(training, "learn", _never)
    progress = RecordedProgress()
    assert desk.run(desk.claim(), progress).state is JobState.SUCCEEDED
    assert progress.stages == ["check", "probe", "evaluate"]


def _starting_from(monkeypatch: pytest.MonkeyPatch, embedding: str) -> None:
    """Let the probe choose this one, as it may when another is no longer there."""

    def choose(evaluator: Any, candidates: Any, *_: Any) -> Any:
        (named,) = (candidate for candidate in candidates if candidate.embedding == embedding)
        return probing.measure_named(evaluator, named)

    monkeypatch.setattr(probing, "choose", choose)


def _damage_probed(services: Services) -> None:
    """The output of the probe of the job that waits."""
    with services.database.read() as session:
        waiting = select(JobRow.id).where(JobRow.state != JobState.SUCCEEDED)
        of_probe = select(StageOutputRow.artifact).where(StageOutputRow.stage == Stage.PROBE)
        path = services.file(session.scalars(of_probe.where(StageOutputRow.job.in_(waiting))).one())
    assert path is not None
    path.write_bytes(path.read_bytes()[:-9])


def test_an_attempt_that_lost_its_job_cannot_publish(desk: Desk) -> None:
    desk.submit(opinions(24))
    first = desk.claim()
    desk.lose()
    second = desk.claim(pid=2)
    with pytest.raises(FencedError):
        desk.run(first)
    assert desk.versions("mood") == []
    assert desk.run(second).state is JobState.SUCCEEDED
    assert [version.version for version in desk.versions("mood")] == [1]


def test_a_worker_with_another_base_refuses_the_job(desk: Desk, other_base: Base, tiny_services: Services) -> None:
    desk.submit(opinions(24))
    job = desk.claim()
    changed = {**job.spec.to_json(), "base": str(other_base.folder)}
    with refused("job-of-other-base"):
        prepare(type(job.spec).from_json(changed), tiny_services, register_base(tiny_services, other_base))


def events_of(services: Services, job: str) -> list[dict[str, Any]]:
    with services.database.read() as session:
        return [JobEventDocument.of(event).to_json() for event in EventRepository(session).list(job)]


def test_a_full_disk_is_told_leaves_no_half_file_and_a_retry_succeeds(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = desk.submit(opinions(24))
    with monkeypatch.context() as patched:
        patched.setattr("onboard.storage.files.os.fsync", full)
        for attempt in range(1, 4):
            done = work(tiny_services, "worker", ["default"], pipeline.run)
            assert done is not None
            assert done.error is not None
            assert (done.attempt, done.error["code"]) == (attempt, "storage")
            assert "No space left on device" in done.error["message"]
            assert done.error["remedy"] == "Free some space, then retry."
            assert str(tiny_services.settings.resolved_home) not in json.dumps(
                [done.error, events_of(tiny_services, job.id)]
            )
            desk.let_be_due(job.id)
    assert desk.job(job.id).state is JobState.DEAD
    with tiny_services.database.write() as session:
        JobRepository(session).retry(job.id)
    again = work(tiny_services, "worker", ["default"], pipeline.run)
    assert again is not None
    assert again.state is JobState.SUCCEEDED
    assert again.error is None
    assert [version.version for version in desk.versions("mood")] == [1]


def test_a_claim_waits_out_its_back_off(desk: Desk, tiny_services: Services) -> None:
    desk.submit(opinions(24))

    def away(job: Job, services: Services, progress: Progress) -> None:
        raise StorageError("The disk is full.", "Free some space, then retry.")

    done = work(tiny_services, "worker", ["default"], away)
    assert done is not None
    assert done.state is JobState.QUEUED
    with tiny_services.database.write() as session:
        assert ClaimRepository(session).claim("worker", ["default"]) is None


def test_the_deployments_time_limit_is_for_jobs_that_name_none(desk: Desk, tiny_services: Services) -> None:
    limited = replace(
        tiny_services, settings=tiny_services.settings.model_copy(update={"job_time_limit_seconds": 900.0})
    )
    desk.submit(opinions(24))
    limits: list[float] = []

    def look(job: Job, services: Services, progress: Progress) -> None:
        assert job.deadline_at is not None
        assert job.claimed_at is not None
        limits.append(job.deadline_at - job.claimed_at)

    work(limited, "worker", ["default"], look)
    assert limits == [pytest.approx(900, abs=0.1)]
