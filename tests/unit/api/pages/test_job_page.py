"""One job as a page, and its way as events tell it."""

from __future__ import annotations

import re
from typing import Any

from fastapi.testclient import TestClient
from support.browsing import EVIL, fail, without_quoted_scripts
from support.registry_samples import add_job, register_sample_base, running_job, sample_task, sample_version
from support.watched_jobs import running, worker

from onboard.api.pages.timeline import timeline
from onboard.domain.job import LEARNING_STAGES, Stage
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.report.figures import live_curves


def at(second: int) -> str:
    return f"2026-01-31T12:00:{second:02d}.000Z"


def state(name: str, second: int, attempt: int = 1) -> dict[str, Any]:
    return {"kind": "state", "message": name, "at": at(second), "attempt": attempt, "stage": None, "seconds": None}


def stage(name: str, kind: str, second: int, seconds: float | None = None, attempt: int = 1) -> dict[str, Any]:
    return {
        "kind": f"stage_{kind}", "message": "", "at": at(second), "attempt": attempt, "stage": name, "seconds": seconds,
    }  # fmt: skip


def shown(job_state: str, *events: dict[str, Any], attempt: int = 1) -> list[tuple[int, list[str]]]:
    job = {"created_at": at(0), "state": job_state, "attempt": attempt}
    return [
        (one.number, [f"{step.name} {step.state} {step.seconds or ''}".strip() for step in one.steps])
        for one in timeline(job, events)
    ]


def test_a_job_that_waits_has_everything_before_it() -> None:
    ((number, steps),) = shown("queued", state("queued", 0, 0), attempt=0)
    assert (number, steps) == (0, ["wait now", *(f"{name} open" for name in LEARNING_STAGES)])


def test_a_job_over_files_has_two_stages() -> None:
    job = {"created_at": at(0), "state": "queued", "attempt": 0, "spec": {"options": {"bulk": {}}}}
    (attempt,) = timeline(job, [state("queued", 0, 0)])
    assert [step.name for step in attempt.steps] == ["wait", "check", "predict"]


def test_only_a_job_that_was_asked_to_choose_its_method_has_that_before_it() -> None:
    for method, chooses in (("auto", True), ("", False), ("linear", False)):
        job = {"created_at": at(0), "state": "queued", "attempt": 0, "spec": {"method": method, "options": {}}}
        (attempt,) = timeline(job, [state("queued", 0, 0)])
        assert ("choose" in [step.name for step in attempt.steps]) is chooses


def test_a_job_that_runs_shows_what_is_done_and_what_is_not() -> None:
    events = state("running", 5), stage("check", "started", 5), stage("check", "finished", 7, 2.0)
    ((_, steps),) = shown("running", *events, stage("probe", "started", 7))
    assert steps[:4] == ["wait done 5.0", "check done 2.0", "probe now", "train open"]


def test_a_second_attempt_does_not_repeat_what_the_first_has_done() -> None:
    first = state("running", 1), stage("check", "started", 1), stage("check", "finished", 2, 1.0)
    again = (
        stage("probe", "started", 2),
        state("queued", 3),
        state("running", 9, 2),
        stage("probe", "started", 9, None, 2),
    )
    attempts = shown("running", *first, *again, attempt=2)
    assert attempts[0] == (1, ["wait done 1.0", "check done 1.0", "probe stopped"])
    assert attempts[1][1][:4] == ["wait done 6.0", "check done", "probe now", "train open"]


def test_a_job_that_failed_shows_where() -> None:
    ((_, steps),) = shown("failed", state("running", 1), stage("check", "started", 1), state("failed", 2))
    assert steps == ["wait done 1.0", "check stopped"]


def test_a_running_job_is_live_and_says_how_far_it_is(browser: TestClient, services: Services) -> None:
    worker(services.database, "w1")
    job = running(services.database, "w1", ago=20, stage=Stage.TRAIN, stage_ago=5, note="step 3 of 9, loss 0.41")
    page = browser.get(f"/jobs/{job.id}").text
    (stream,) = re.findall(r'data-live="([^"]+)"', page)
    assert re.fullmatch(rf"/live/{job.id}\?since=[1-9]\d*", stream)
    for text in ("step 3 of 9, loss 0.41", 'aria-current="step"', "w1", f'action="/jobs/{job.id}/cancel"'):
        assert text in page
    assert f"<code>onboard jobs show {job.id}</code>" in page
    document = browser.get(f"/jobs/{job.id}.json").json()
    assert document["running"]["stage"] == "train"
    assert f"job {job.id}" in browser.get("/jobs/colours").text  # a task's name means its newest job


def test_the_loss_is_drawn_while_it_trains(browser: TestClient, services: Services) -> None:
    worker(services.database, "w1")
    job = running(services.database, "w1", ago=20, stage=Stage.TRAIN)
    assert "Training so far" not in browser.get(f"/jobs/{job.id}").text
    with services.database.write() as session:
        claims = ClaimRepository(session)
        for part in ("fold 1", EVIL):
            for step in range(1, 4):
                said = f"{part} step {10 * step}/90, about 3 s left in this stage"
                claims.append(job.id, job.attempt, "note", said, stage=Stage.TRAIN, numbers={"loss": 1 / step})
    page = without_quoted_scripts(browser.get(f"/jobs/{job.id}").text)
    assert page.count("<polyline") == 2
    assert "Loss of fold 1 in nats" in page
    assert "From 1 to 0.333 in 30 steps" in page


def test_rows_of_an_event_are_shown_as_numbers(browser: TestClient, services: Services) -> None:
    job = running_job(services.database, "mood")
    numbers = {"rows": {"train": 60, "validation": 0, "test": 7}, "labels": 2, "why": {"message": EVIL}}
    with services.database.write() as session:
        ClaimRepository(session).append(job.id, job.attempt, "note", "checked", stage=Stage.CHECK, numbers=numbers)
    page = without_quoted_scripts(browser.get(f"/jobs/{job.id}").text)
    assert "rows 60/0/7, labels 2, why &lt;script" in page


def test_only_the_present_attempt_is_drawn() -> None:
    def said(attempt: int, loss: float, part: str = "embedding") -> dict[str, Any]:
        message = f"{part} step 10/20"
        return {"kind": "note", "attempt": attempt, "message": message, "numbers": {"loss": loss}}

    events = [said(1, 9.0), said(1, 8.0), *(said(2, loss) for loss in (2.0, 1.5))]
    (line,) = live_curves([*events, {**said(2, 7.0), "message": "linear: 7.000 nats on 9 rows"}])
    assert line.summary.startswith("From 2 to 1.5 in 20 steps")
    assert live_curves([]) == live_curves([said(1, 1.0)]) == []
    assert len(live_curves([said(1, loss, f"fold {fold}") for fold in range(9) for loss in (1.0, 2.0)])) == 4


def test_a_job_leads_to_its_task_and_what_it_published_and_the_result_comes_first(
    browser: TestClient, services: Services
) -> None:
    register_sample_base(services.database)
    job = running_job(services.database, "mood")
    with services.database.write() as session:
        VersionRepository(session).publish(
            sample_version("mood", job=job.id), sample_task("mood"), attempt=job.attempt, result={}
        )
    page = browser.get(f"/jobs/{job.id}").text
    for place in ("/tasks/mood?ref=v1#try", "/tasks/mood?ref=v1#aliases", "/tasks/mood#versions", "/tasks/mood"):
        assert f'href="{place}"' in page
    order = [page.index(part) for part in ('class="headline"', 'id="way"', 'id="facts"', 'id="log"')]
    assert order == sorted(order)
    waits = add_job(services.database, "mood")
    assert "#try" not in browser.get(f"/jobs/{waits.id}").text


def test_a_job_that_waits_says_why_and_what_ends_it(browser: TestClient, services: Services) -> None:
    job = add_job(services.database, "mood", queue="gpu")
    page = browser.get(f"/jobs/{job.id}").text
    assert "no worker on gpu" in page
    assert "<code>onboard worker --queue gpu</code>" in page


def test_a_job_that_failed_shows_the_remedy_and_can_be_tried_again(browser: TestClient, services: Services) -> None:
    job = fail(services.database, "mood", "Row 3 has no label.")
    page = browser.get(f"/jobs/{job}").text
    assert "Row 3 has no label." in page
    assert "Mend <code>it</code>." in page
    assert 'data-live=""' in page
    assert f'href="/v1/jobs/{job}/report"' in page
    answer = browser.post(f"/jobs/{job}/retry", data={"back": f"/jobs/{job}"})
    assert answer.headers["location"] == f"/jobs/{job}"
    assert f'action="/jobs/{job}/retry"' not in browser.get(f"/jobs/{job}").text


def test_an_unknown_job_is_a_page_that_says_so(browser: TestClient) -> None:
    for place in ("/jobs/0123456789ab", "/jobs/nobody"):
        answer = browser.get(place)
        assert (answer.status_code, "onboard jobs list" in answer.text) == (404, True)
    assert browser.get("/jobs/nobody.json").json()["code"] == "not_found"


def test_who_may_only_read_sees_a_job_without_buttons(reader: TestClient, services: Services) -> None:
    job = fail(services.database, "mood", "No.")
    page = reader.get(f"/jobs/{job}").text
    assert re.findall(r'action="([^"]+)"', page) == ["/logout"]


def test_what_users_wrote_is_text_on_the_page_of_a_job(browser: TestClient, services: Services) -> None:
    failed = fail(services.database, "mood", EVIL, remedy=EVIL)
    without_quoted_scripts(browser.get(f"/jobs/{failed}").text)
    worker(services.database, EVIL)
    job = running(services.database, EVIL, note=EVIL, init=EVIL, base=EVIL)
    without_quoted_scripts(browser.get(f"/jobs/{job.id}").text)
    without_quoted_scripts(browser.get(f"/jobs/{EVIL.replace('/', '')}").text + "&lt;script&gt;alert")
