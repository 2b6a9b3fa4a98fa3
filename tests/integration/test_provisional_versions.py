"""A job publishes its readout first, as provisional; then a better version, or it confirms the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.real_jobs import DOCUMENT, CrashError, Desk, HookedProgress, crash_after, opinions
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.job import Job, JobState
from onboard.errors import CancelledError, ConflictError, FencedError, InputError
from onboard.jobs import control
from onboard.pipeline import provisional
from onboard.pipeline import run as pipeline
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.registry.webhook_tables import WebhookEventRow
from onboard.testing import RecordedProgress
from onboard.versions.delete import delete_task
from onboard.versions.fetch import fetch

pytestmark = pytest.mark.usefixtures("in_two_steps")


def versions_of(desk: Desk, task: str = "mood") -> list[tuple[int, str, bool]]:
    return [(version.version, version.method, version.provisional) for version in desk.versions(task)]


def notes(desk: Desk, job: Job) -> list[dict[str, Any]]:
    document = control.report_document(desk.services.database, job)
    return [event for event in document["events"] if event["numbers"].get("provisional")]


def test_the_readout_is_published_first_and_a_better_version_after_it(desk: Desk, rows_say: Any) -> None:
    rows_say(better=True)
    job, standing = desk.submit(opinions(24)), []

    def look(what: str, name: str) -> None:
        if (what, name) == ("started", "probe"):
            standing.append((desk.version("mood").reference, desk.version("mood").provisional, desk.job(job.id).state))

    done = desk.run(desk.claim(), HookedProgress(look))
    assert standing == [("mood@v1", True, JobState.RUNNING)]
    assert versions_of(desk) == [(1, "linear", True), (2, "hyperformer++", False)]
    assert desk.version("mood").reference == "mood@v2"
    result = done.result or {}
    assert set(result) >= set(DOCUMENT)
    assert (result["version"], result["provisional"]["version"], result["provisional"]["confirmed"]) == (2, 1, False)
    (note,) = notes(desk, done)
    assert (note["stage"], note["numbers"]) == ("readout", {"provisional": True, "version": 1, "latest": True})
    assert list(result["seconds"])[:3] == ["check", "readout", "probe"]


def test_where_rows_do_not_say_that_the_second_is_better_the_first_is_confirmed(
    desk: Desk, rows_say: Any, tiny_services: Services
) -> None:
    rows_say(better=False)
    done = desk.run(desk.submit_and_claim(opinions(24)))
    assert (done.state, versions_of(desk)) == (JobState.SUCCEEDED, [(1, "linear", False)])
    result = done.result or {}
    assert set(result) >= set(DOCUMENT)
    assert (result["version"], result["latest"]["moved"]) == (1, True)
    assert result["embedding_digest"] == desk.version("mood").embedding_digest
    facts = result["provisional"]
    assert (facts["confirmed"], facts["rows"]) == (True, 24)
    assert facts["start"]
    assert "rows left out" in facts["reason"]
    assert facts["low"] <= facts["after"] - facts["before"] <= facts["high"]
    assert result["baselines"]["validation"].keys() == {"majority", "tfidf_logistic_regression"}
    with tiny_services.database.read() as session:
        kinds = [row.type for row in session.scalars(select(WebhookEventRow))]
    assert sorted(kinds) == ["alias.moved", "version.confirmed", "version.published"]


def test_what_has_less_loss_on_rows_left_out_is_published(desk: Desk) -> None:
    for task, rows in (("plain", opinions(24)), ("mood", opinions(40))):
        result = desk.learn(rows, task)
        facts = result["provisional"]
        assert facts["confirmed"] == (not facts["after"] < facts["before"])
        assert result["version"] == (1 if facts["confirmed"] else 2)


def test_rows_that_are_too_few_to_compare_the_two_leave_it_to_the_embedding(desk: Desk) -> None:
    result = desk.learn(opinions(6))
    assert (result["version"], result["provisional"]["confirmed"]) == (2, False)
    assert result["provisional"]["reason"].startswith("There are no held-out rows")


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize("stage", ["readout", "probe", "train", "evaluate"])
def test_an_attempt_that_dies_after_any_stage_publishes_each_version_once(
    desk: Desk, rows_say: Any, stage: str, better: bool
) -> None:
    rows_say(better=better)
    desk.submit(opinions(24))
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after(stage))
    between = [] if stage == "readout" else [(1, "linear", True)]
    assert versions_of(desk) == between
    desk.lose()
    progress = RecordedProgress()
    done = desk.run(desk.claim(), progress)
    assert done.state is JobState.SUCCEEDED
    assert "readout" not in progress.stages
    final = [(1, "linear", True), (2, "hyperformer++", False)] if better else [(1, "linear", False)]
    assert versions_of(desk) == final
    assert len(notes(desk, done)) == 1


def test_a_cancelled_job_leaves_its_provisional_version_and_a_retry_goes_on_from_it(desk: Desk, rows_say: Any) -> None:
    rows_say(better=True)
    job = desk.submit(opinions(24))

    def cancel(what: str, name: str) -> None:
        if (what, name) == ("started", "train"):
            raise CancelledError("Someone cancelled it.")

    with pytest.raises(CancelledError):
        desk.run(desk.claim(), HookedProgress(cancel))
    desk.end(job.id, JobState.CANCELLED)
    assert versions_of(desk) == [(1, "linear", True)]
    shown = control.report_document(desk.services.database, desk.job(job.id))
    assert (shown["state"], shown["provisional"]) == ("cancelled", {"version": 1, "confirmed": False})
    control.retry(desk.services.database, job.id)
    done = desk.run(desk.claim())
    assert versions_of(desk) == [(1, "linear", True), (2, "hyperformer++", False)]
    assert len(notes(desk, done)) == 1


def test_an_attempt_that_lost_its_job_publishes_nothing(desk: Desk, rows_say: Any) -> None:
    for better in (True, False):
        rows_say(better=better)
        task = f"mood-{better}".lower()
        desk.submit(opinions(24), task)

        def lose(what: str, name: str) -> None:
            if (what, name) == ("started", "publish"):
                desk.lose()
                desk.claim()

        first = desk.claim()
        with pytest.raises(FencedError):
            desk.run(first, HookedProgress(lose))
        assert versions_of(desk, task) == [(1, "linear", True)]
        assert desk.job(first.id).state is JobState.RUNNING
        desk.lose()
        assert desk.run(desk.claim()).state is JobState.SUCCEEDED


def test_a_task_that_is_deleted_between_the_two_stays_deleted(desk: Desk, tiny_services: Services) -> None:
    job = desk.submit(opinions(24))

    def delete(what: str, name: str) -> None:
        if (what, name) == ("started", "train"):
            delete_task(tiny_services, "mood")

    with pytest.raises((FencedError, CancelledError)):
        desk.run(desk.claim(), HookedProgress(delete))
    assert desk.versions("mood") == []
    assert desk.job(job.id).state is JobState.CANCELLED


def test_fast_stops_after_the_first_version(desk: Desk) -> None:
    progress = RecordedProgress()
    job = desk.submit(opinions(24), fast=True)
    done = desk.run(desk.claim(), progress)
    result = done.result or {}
    assert progress.stages == ["check", "readout", "evaluate"]
    assert versions_of(desk) == [(1, "linear", False)]
    assert (result["version"], result["provisional"]["confirmed"]) == (1, True)
    assert (job.spec.method, job.spec.tune_hypernetwork) == ("linear", "never")
    assert "tfidf_logistic_regression" in result["baselines"]["validation"]


def test_fast_takes_one_row_of_each_label(desk: Desk) -> None:
    rows = [{"text": "good as gold", "label": "a"}, {"text": "bad as lead", "label": "b"}]
    assert desk.learn(rows, fast=True)["version"] == 1


def test_fast_is_refused_beside_whatever_it_leaves_out(desk: Desk) -> None:
    for asked in (
        {"method": "adapters"}, {"tune_hypernetwork": "always"}, {"readout": "never"}, {"init": "sst2"},
        {"probe": "exhaustive"},
    ):  # fmt: skip
        with refused("option-with-method", alone="--fast"):
            desk.submit(opinions(24), fast=True, **asked)
    assert desk.jobs() == []


def test_a_label_without_a_training_row_makes_no_provisional_version(desk: Desk, monkeypatch: Any) -> None:
    def refuse(*arguments: Any) -> Any:
        raise InputError("A label has no training row.", "Submit a row of every label.")

    monkeypatch.setattr(provisional, "train_own", refuse)
    result = desk.learn(opinions(24))
    assert (result["version"], result["provisional"], versions_of(desk)) == (1, None, [(1, "hyperformer++", False)])


def test_the_embedding_of_a_readout_alone_is_refused_with_what_to_do(desk: Desk, tmp_path: Path) -> None:
    desk.submit(opinions(24))
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after("probe"))
    version = desk.version("mood")
    with pytest.raises(ConflictError) as caught:
        version.require_embedding("to start from")
    assert "provisional" in caught.value.message
    assert "weights.safetensors" in [path.name for path in fetch(desk.services, "mood", tmp_path).files]


def test_a_hypernetwork_that_moves_does_not_publish_the_readout_again(
    desk: Desk, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = []

    def once(*arguments: Any, **named: Any) -> Any:
        if not moved:
            moved.append(True)
            raise pipeline.HeadMovedError(1, 2)
        return train(*arguments, **named)

    train = pipeline.train_stage
    monkeypatch.setattr(pipeline, "train_stage", once)
    job = desk.submit(opinions(24))
    desk.run(desk.claim())
    with desk.services.database.read() as session:
        of_job = session.scalars(select(EmbeddingVersionRow).where(EmbeddingVersionRow.job == job.id))
        assert sum(row.method == "linear" for row in of_job) == 1
