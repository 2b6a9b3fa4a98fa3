"""`onboard tasks delete`: nothing of the task is left anywhere, and nothing of any other task is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select
from support.old_and_needless import digests
from support.real_jobs import Desk, HookedProgress, opinions, write_rows
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.job import JobState, Stage
from onboard.errors import FencedError, NotFoundError, StorageError
from onboard.jobs.control import full_document, retry
from onboard.operations.access import changes
from onboard.operations.gc import collect_garbage
from onboard.operations.lock import alone
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.tables import JobEventRow, SnapshotRow, StageOutputRow, TaskRow
from onboard.registry.transitions import TransitionRepository
from onboard.report import render
from onboard.serving import Predictor
from onboard.storage.artifacts import ArtifactStore
from onboard.versions.delete import delete_task

SECRET = "zyzzyva"  # stands in every text of the task that is deleted, and in no other


def secret_rows(count: int = 16, start: int = 0) -> list[dict[str, Any]]:
    return [{**row, "text": f"{SECRET} {row['text']}"} for row in opinions(count, (f"{SECRET}-a", f"{SECRET}-b"))]


def secret_task(desk: Desk, task: str = "mood", **more: Any) -> dict[str, Any]:
    """A published task with a test split, and texts of which some are to be labelled next."""
    pool = [{"text": f"{SECRET} film number {number}"} for number in range(8)]
    unlabelled = {"unlabelled": write_rows(desk.folder / f"{task}-pool.jsonl", pool)}
    return desk.learn(secret_rows(), task, options=unlabelled, test=secret_rows(8), **more)


def traces(services: Services, of: str = SECRET) -> list[str]:
    """The files of the home in which the word stands, compressed ones read as they are."""
    home = services.settings.resolved_home
    return [str(path) for path in home.rglob("*") if path.is_file() and of.encode() in path.read_bytes()]


def test_no_byte_of_the_rows_labels_or_results_is_left_and_one_line_says_what_went(desk: Desk) -> None:
    result = secret_task(desk)
    assert result["label_next"]["rows"]
    services = desk.services
    before = digests(services)
    assert len(traces(services)) >= 2  # the database, and a result of a stage
    done = delete_task(services, "mood").to_document().to_json()
    assert done["removed"]["versions"] == done["removed"]["jobs"] == 1
    assert done["removed"]["datasets"] == 2  # its rows, and the pool
    assert done["removed"]["artifacts"] == len(before - digests(services)) >= 6
    assert (done["deleted"], done["shared_with"], done["unlearning"]) == (True, [], None)
    assert done["descendants"] == {"versions": [], "hypernetworks": []}
    assert traces(services) == []
    (line,) = (change for change in changes(services.database, 10)["changes"] if change["action"] == "task.delete")
    assert line["subject"] == "mood"
    assert line["facts"] == {"versions": 1, "jobs": 1, "datasets": 2, "unlearn": False}
    assert collect_garbage(services).freed.count == 0
    assert collect_garbage(services).damaged == []


def test_its_name_is_free_and_its_numbers_go_on(desk: Desk) -> None:
    for _ in range(2):
        secret_task(desk)
    delete_task(desk.services, "mood")
    with pytest.raises(NotFoundError):
        desk.version("mood@v1")
    assert desk.learn(opinions(16), "mood")["version"] == 3
    assert [version.version for version in desk.versions("mood")] == [3]
    with desk.services.database.read() as session:
        assert AliasRepository(session).list("mood") == {"latest": 3}
        assert [move.version for move in AliasRepository(session).history("mood", "latest")] == [3]


def test_of_its_jobs_states_and_times_stay_and_the_counters_do_not_fall(desk: Desk) -> None:
    services = desk.services
    job = secret_task(desk)["job"]
    with services.database.read() as session:
        counted = TransitionRepository(session).list()
    before = desk.job(job)
    delete_task(services, "mood")
    after = desk.job(job)
    assert (after.state, after.created_at, after.finished_at) == (before.state, before.created_at, before.finished_at)
    assert (after.spec.dataset, after.result, after.key) == ("", None, None)
    with services.database.read() as session:
        assert TransitionRepository(session).list() == counted
        kinds = set(session.scalars(select(JobEventRow.kind).where(JobEventRow.job == job)))
    assert kinds == {"state"}
    assert "mood" in render(full_document(services.database, after))  # type: ignore[arg-type]  # a job's document


def test_what_other_tasks_have_too_stays_with_them(desk: Desk) -> None:
    for task in ("mood", "same"):
        desk.learn(secret_rows(), task)
    desk.learn(opinions(16), "other")
    predictor = Predictor(desk.services)
    inputs = [{"task": task, "text": "film was good"} for task in ("same", "other", "sst2")]
    before = predictor.predict(inputs)
    done = delete_task(desk.services, "mood")
    assert done.removed.shared_with == ("same",)
    assert done.removed.datasets == 0
    assert Predictor(desk.services).predict(inputs) == before
    assert collect_garbage(desk.services).damaged == []
    done = delete_task(desk.services, "same")
    assert (done.removed.shared_with, done.removed.datasets) == ((), 1)
    assert traces(desk.services) == []


def test_a_dry_run_says_what_would_go_and_changes_nothing(desk: Desk) -> None:
    secret_task(desk)
    desk.learn(opinions(16), "child", init="mood")
    before, versions = digests(desk.services), desk.versions("mood")
    dry = delete_task(desk.services, "mood", unlearning=True, dry_run=True).to_document().to_json()
    assert (digests(desk.services), desk.versions("mood")) == (before, versions)
    assert (dry["deleted"], dry["dry_run"]) == (False, True)
    assert dry["unlearning"]["rebuilding"] == [{"versions": ["child@v1"], "job": None}]
    assert len(desk.jobs()) == 2
    done = delete_task(desk.services, "mood", unlearning=True).to_document().to_json()
    assert done["removed"] == dry["removed"]
    assert done["descendants"] == dry["descendants"]


def test_rows_that_were_never_learned_go_too_and_waiting_and_failed_jobs_cannot_come_back(desk: Desk) -> None:
    waiting = desk.submit(secret_rows(), "mood", init="random")
    assert traces(desk.services)
    done = delete_task(desk.services, "mood")
    assert (done.removed.versions, done.removed.jobs, done.removed.datasets) == (0, 1, 1)
    assert traces(desk.services) == []
    job = desk.job(waiting.id)
    assert job.state is JobState.CANCELLED
    assert job.error is not None
    assert job.error["code"] == "deleted"
    with refused("job-task-deleted"):
        retry(desk.services.database, waiting.id)
    with pytest.raises(NotFoundError):
        delete_task(desk.services, "mood")


def test_a_running_job_of_the_task_publishes_nothing_any_more(desk: Desk) -> None:
    desk.submit(secret_rows(), "mood")

    def delete_while_it_trains(what: str, name: str) -> None:
        if (what, name) == ("finished", "train"):
            delete_task(desk.services, "mood")

    with pytest.raises((FencedError, NotFoundError)):
        desk.run(desk.claim(), HookedProgress(delete_while_it_trains))
    with desk.services.database.read() as session:
        assert session.scalars(select(StageOutputRow.key)).all() == []
        assert session.scalars(select(SnapshotRow.digest)).all() == []
        assert session.scalars(select(TaskRow.name).where(TaskRow.name == "mood")).all() == []


def test_another_job_that_may_have_started_from_it_begins_anew_without_it(desk: Desk) -> None:
    secret_task(desk)
    job = desk.submit(opinions(24), "child")

    def delete_after_the_probe(what: str, name: str) -> None:
        if (what, name) == ("finished", "probe"):
            done = delete_task(desk.services, "mood")
            assert done.queues == {"default"}

    with pytest.raises(FencedError):
        desk.run(desk.claim(), HookedProgress(delete_after_the_probe))
    with desk.services.database.read() as session:
        assert session.scalars(select(StageOutputRow.key)).all() == []
    again = desk.claim()
    assert (again.id, again.counted_attempt) == (job.id, 1)
    result = desk.run(again).result
    assert result is not None
    assert "mood" not in json.dumps(result["init"])


@pytest.mark.parametrize("task", ["mood", "child"])
def test_an_attempt_that_lost_its_job_by_it_leaves_no_output_behind(desk: Desk, task: str) -> None:
    secret_task(desk)
    desk.submit(opinions(24), task, **({"new_labels": True} if task == "mood" else {"init": "mood"}))

    def delete_while_it_trains(what: str, name: str) -> None:
        if (what, name) == ("started", "train"):
            delete_task(desk.services, "mood")

    with pytest.raises(FencedError):
        desk.run(desk.claim(), HookedProgress(delete_while_it_trains))
    with desk.services.database.read() as session:
        assert session.scalars(select(StageOutputRow.key)).all() == []


def test_weights_that_were_tuned_on_it_and_never_published_go_too(desk: Desk) -> None:
    job = desk.learn(secret_rows(), "mood")["job"]
    weights = desk.services.store(b"weights", "hypernetwork")
    output = desk.services.store(json.dumps({"artifact": weights}).encode(), "stage_output")
    with desk.services.database.write() as session:
        StageOutputRepository(session).put("tuned", job, Stage.TUNE, output)
    delete_task(desk.services, "mood")
    assert not desk.services.artifacts.has(weights)
    assert not desk.services.artifacts.has(output)


def test_files_that_cannot_be_deleted_are_told_and_go_with_the_next_garbage_collection(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret_task(desk)

    def fail(self: ArtifactStore, *gone: str) -> None:
        raise StorageError("s3://inner-bucket is away.").hide(StorageError("The store is away."))

    with monkeypatch.context() as patched:
        patched.setattr(ArtifactStore, "delete", fail)
        with refused("artifacts-not-deleted") as caught:
            delete_task(desk.services, "mood")
    assert "onboard gc" in caught.value.remedy
    assert "inner-bucket" in caught.value.message
    assert caught.value.outside.message.endswith("still there: The store is away.")
    with pytest.raises(NotFoundError):
        desk.version("mood")
    assert collect_garbage(desk.services).freed.count >= 6  # however young they are
    assert traces(desk.services) == []


def test_rows_that_were_submitted_twice_go_all_the_same(desk: Desk) -> None:
    """As a client does that did not hear the first answer."""
    for _ in range(2):
        desk.submit(secret_rows(), key="once")
    before = digests(desk.services)
    removed = delete_task(desk.services, "mood").to_document().to_json()["removed"]
    assert (removed["jobs"], removed["datasets"]) == (1, 1)
    assert removed["artifacts"] == len(before - digests(desk.services)) == 2


def test_bytes_that_somebody_else_is_about_to_use_stay(desk: Desk) -> None:
    desk.learn(secret_rows(), "mood")
    with desk.services.database.read() as session:
        artifact = session.scalars(select(SnapshotRow.artifact)).one()
    content = desk.services.read(artifact)
    desk.services.store(content, "snapshot")  # a submit of the same rows, which has not named them yet
    delete_task(desk.services, "mood")
    assert desk.services.artifacts.intact(artifact)


def test_it_does_not_run_beside_other_maintenance(desk: Desk) -> None:
    secret_task(desk)
    with alone(desk.services.database, "backup"), refused("maintenance-at-work") as caught:
        delete_task(desk.services, "mood")
    assert caught.value.data["holder"].startswith("backup ")
    assert desk.versions("mood")
    with pytest.raises(NotFoundError):
        delete_task(desk.services, "nothing")
    delete_task(desk.services, "mood")


def test_a_shipped_task_goes_and_cannot_be_unlearned(desk: Desk, tiny_base: Base) -> None:
    with refused("task-taught-base"):
        delete_task(desk.services, "sst2", unlearning=True)
    assert delete_task(desk.services, "sst2").removed.versions == 1
    chosen = desk.learn(opinions(24), "mood")["init"]
    assert "sst2@v1" not in json.dumps(chosen)
    assert {task.name for task in tiny_base.sources} - {"sst2"} == names(desk) - {"mood"}


def names(desk: Desk) -> set[str]:
    with desk.services.database.read() as session:
        return set(session.scalars(select(TaskRow.name).where(TaskRow.deleted_at.is_(None))))
