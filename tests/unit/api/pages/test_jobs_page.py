"""The list of jobs: filters in the address, pages by key, many jobs changed at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from support.browsing import EVIL, fail, without_quoted_scripts
from support.registry_samples import (
    add_job,
    claim_job,
    publish,
    register_sample_base,
    running_job,
    sample_task,
    sample_version,
)
from support.watched_jobs import ended, ended_together, queued, running

from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.jobs.control import brief
from onboard.jobs.many import change_matching, change_selected, jobs_page
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from onboard.registry.versions import VersionRepository
from onboard.testing import MemoryDoorbell


def jobs_on(page: str) -> list[str]:
    return re.findall(r'name="job" value="([0-9a-f]{12})"', page)


def states_of(database: Database, jobs: Sequence[str]) -> list[str]:
    with database.read() as session:
        return [JobRepository(session).get(job).state.value for job in jobs]


def test_pages_go_by_key_and_counts_are_of_all_states(database: Database) -> None:
    jobs = [add_job(database, "mood", queue="gpu").id for _ in range(5)]
    add_job(database, "other")
    failed = fail(database, "mood", "No.")
    search = JobSearch((JobState.QUEUED,), task="mood")
    first = jobs_page(database, search, None, 3)
    assert ([job.id for job in first.jobs], first.next) == (jobs[:1:-1], jobs[2])
    assert first.counts == {JobState.QUEUED: 5, JobState.FAILED: 1}
    assert (first.matching(search), first.matching(search.of_any_state)) == (5, 6)
    add_job(database, "mood")  # what comes meanwhile shifts nothing
    second = jobs_page(database, search, first.next, 3)
    assert ([job.id for job in second.jobs], second.next) == (jobs[1::-1], None)
    oldest = jobs_page(database, JobSearch(queue="gpu"), None, 2, JobOrder.OLDEST)
    assert [job.id for job in oldest.jobs] == jobs[:2]
    assert jobs_page(database, JobSearch(states=(JobState.FAILED,)), None, 9).jobs[0].id == failed


def test_jobs_are_sorted_by_wait_run_and_task_page_by_page(database: Database) -> None:
    waiting = [queued(database, ago=ago).id for ago in (30, 3000)]
    working = running(database, "w1", ago=50).id
    slow, quick = ended(database, ago=1, wait=5, run=400), ended(database, ago=1, wait=70, run=0.5)
    never = ended(database, ago=1, wait=20, run=None, state=JobState.CANCELLED)
    waited = [waiting[1], waiting[0], quick, never, slow, working]
    ran = [working, slow, quick, never, waiting[1], waiting[0]]
    for order, places in (("wait", waited), ("run", ran)):
        assert listed(database, f"longest-{order}") == places, order
        assert listed(database, f"shortest-{order}") == places[::-1], order
    first = jobs_page(database, JobSearch(), None, 1, JobOrder.LONGEST_WAIT)
    with database.write() as session:  # it is no longer what it was, and the next page goes on all the same
        session.execute(update(JobRow).where(JobRow.id == waiting[1]).values(started_at=JobRow.not_before_at + 1))
    assert jobs_page(database, JobSearch(), first.next, 1, JobOrder.LONGEST_WAIT).jobs[0].id == waiting[0]
    other = queued(database, task="a").id
    assert listed(database, "task")[0] == other
    assert listed(database, "task-backwards")[-1] == other


def listed(database: Database, order: str) -> list[str]:
    """All jobs in this order, two a page."""
    jobs, after = [], None
    while True:
        page = jobs_page(database, JobSearch(), after, 2, JobOrder(order))
        jobs += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            return jobs


def test_a_page_has_of_each_job_what_a_list_shows(database: Database) -> None:
    register_sample_base(database)
    publish(database, "mood")
    add_job(database, "mood", owner="somebody", priority=7)
    fail(database, "mood", "No.")
    with database.read() as session:
        whole = JobRepository(session).list(task="mood")
    jobs = jobs_page(database, JobSearch(task="mood"), None, 9).jobs
    # the version of a result is that of the sample's: it has none
    assert [{**brief(job), "version": None} for job in jobs] == [{**brief(job), "version": None} for job in whole]


def test_the_version_of_a_job_is_read_from_its_result(database: Database) -> None:
    ended(database, ago=1)
    with database.write() as session:
        session.execute(update(JobRow).values(result={"version": 4, "seconds": {}}))
    (job,) = jobs_page(database, JobSearch(), None, 9).jobs
    assert brief(job)["version"] == 4


def test_those_that_match_are_changed_part_by_part_and_no_others(database: Database) -> None:
    jobs = [fail(database, "mood", "No.") for _ in range(5)]
    other, waiting = fail(database, "other", "No."), add_job(database, "mood").id
    search, after, parts = JobSearch(task="mood"), None, []
    while True:
        changed = change_matching(database, "retry", search, after, most=2)
        parts.append((changed.done, changed.refused, sorted(changed.queues)))
        after = changed.after
        if after is None:
            break
    assert parts == [(2, 0, ["default"]), (2, 0, ["default"]), (1, 0, ["default"])]
    assert states_of(database, [*jobs, other, waiting]) == ["queued"] * 5 + ["failed", "queued"]
    assert change_matching(database, "cancel", JobSearch((JobState.FAILED,))).done == 0


def test_what_cannot_be_changed_is_told_and_the_rest_is_done(database: Database) -> None:
    failed, waiting = fail(database, "mood", "No."), add_job(database, "mood").id
    changed = change_selected(database, "cancel", [failed, waiting, "0123456789ab", waiting])
    assert (changed.done, changed.refused) == (1, 2)
    assert "failed" in changed.refusals[0]
    assert "0123456789ab" in changed.refusals[1]


def test_the_address_says_what_is_shown(browser: TestClient, services: Services) -> None:
    failed = fail(services.database, "mood", "Bad row.")
    waiting = add_job(services.database, "mood", owner="somebody", queue="gpu").id
    for query, shown in (
        ("", [waiting, failed]),
        ("?sort=oldest", [failed, waiting]),
        ("?state=failed", [failed]),
        ("?state=failed&state=queued&task=mood", [waiting, failed]),
        ("?owner=somebody", [waiting]),
        ("?queue=gpu&task=", [waiting]),
        ("?task=nobody", []),
    ):
        page = browser.get(f"/jobs{query}").text
        assert jobs_on(page) == shown, query
        document = browser.get(f"/jobs.json{query}").json()
        assert [job["job"] for job in document["jobs"]] == shown, query
        assert f'href="/jobs.json{query}"' in unescape(page), query
    page = browser.get("/jobs?state=failed&task=mood").text
    assert re.findall(r'href="([^"]*)" aria-current="true"', page) == ["/jobs?state=failed&amp;task=mood"]
    assert "<code>onboard jobs list --state failed --task mood</code>" in page


def test_columns_lead_to_their_order_and_back(browser: TestClient, services: Services) -> None:
    fail(services.database, "mood", "No.")
    page = unescape(browser.get("/jobs?state=failed&sort=longest-run").text)
    for order in ("sort=task", "sort=longest-wait", "sort=shortest-run"):
        assert f'<a href="/jobs?state=failed&{order}">' in page
    assert '<a href="/jobs?state=failed">submitted</a>' in page
    assert re.findall(r'aria-sort="(\w+)"><a [^>]+>(\w+)', page) == [("descending", "run")]
    assert re.findall(r'aria-sort="(\w+)"><a [^>]+>(\w+)', browser.get("/jobs?sort=task").text) == [
        ("ascending", "task")
    ]
    (job,) = browser.get("/jobs.json?sort=longest-run").json()["jobs"]
    assert job["waited_seconds"] >= 0
    assert job["ran_seconds"] >= 0


def test_a_filter_that_does_not_parse_says_which_values_do(browser: TestClient, services: Services) -> None:
    for query, value in (("state=broken", "dead"), ("sort=sideways", "oldest")):
        answer = browser.get(f"/jobs?{query}")
        assert answer.status_code == 422
        assert value in answer.text
        assert 'role="alert"' in answer.text
    assert browser.get("/jobs?after=0123456789ab").status_code == 404
    job = add_job(services.database, "mood").id
    for place in (f"1~{job}", f"x~{job}&sort=longest-run", f"nan~{job}&sort=longest-run"):
        assert browser.get(f"/jobs?after={place}").status_code == 422, place


def test_a_long_list_has_pages(browser: TestClient, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.api.pages.jobs.PAGE", 2)
    jobs = [add_job(services.database, "mood").id for _ in range(3)]
    page = browser.get("/jobs?task=mood").text
    (following,) = re.findall(r'href="([^"]*)" rel="next"', page)
    last = browser.get(unescape(following)).text
    assert jobs_on(page) + jobs_on(last) == jobs[::-1]
    assert 'rel="next"' not in last
    assert 'href="/jobs?task=mood">First page' in last


def test_selected_jobs_are_changed(browser: TestClient, services: Services, rung: MemoryDoorbell) -> None:
    jobs = [fail(services.database, "mood", "No.") for _ in range(3)]
    answer = browser.post("/jobs/selected", data={"change": "retry", "job": jobs[:2], "task": "mood"})
    assert "<b>2</b> queued again" in answer.text
    assert 'href="/jobs?task=mood"' in answer.text
    assert states_of(services.database, jobs) == ["queued", "queued", "failed"]
    assert rung.rung == {"default": 1}
    assert browser.post("/jobs/selected", data={"change": "cancel"}).status_code == 422
    assert browser.post("/jobs/selected", data={"change": "delete", "job": jobs}).status_code == 422


def test_all_that_match_are_changed_by_a_page_that_goes_on_by_itself(
    browser: TestClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.api.pages.jobs.MOST_AT_ONCE", 2)
    jobs = [add_job(services.database, "mood").id for _ in range(5)]
    other = add_job(services.database, "other").id
    form: dict[str, Any] = {"change": "cancel", "task": "mood", "state": "queued"}
    done = []
    while form:
        page = browser.post("/jobs/matching", data=form).text
        done += re.findall(r"<b>(\d+)</b> cancelled", page)
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page)) if "Go on" in page else {}
    assert done == ["2", "4", "5"]
    assert states_of(services.database, [*jobs, other]) == ["cancelled"] * 5 + ["queued"]


def test_only_what_can_be_done_is_offered_with_the_number_of_jobs_that_it_is_done_to(
    browser: TestClient, services: Services
) -> None:
    fail(services.database, "mood", "No.")
    fail(services.database, "mood", "No.")
    for _ in range(3):
        add_job(services.database, "mood")
    both = browser.get("/jobs").text
    assert re.findall(r">((?:Cancel|Retry) \d+)<", both) == ["Cancel 3", "Retry 2"]
    waiting, failed = browser.get("/jobs?state=queued").text, browser.get("/jobs?state=failed").text
    assert re.findall(r">((?:Cancel|Retry)[ \d]*)<", waiting) == ["Cancel", "Cancel 3"]
    assert re.findall(r">((?:Cancel|Retry)[ \d]*)<", failed) == ["Retry", "Retry 2"]
    ended_together(services.database, 2, JobState.SUCCEEDED)
    assert "/jobs/matching" not in browser.get("/jobs?state=succeeded").text


def test_a_job_that_published_shows_what_it_was_measured_at(browser: TestClient, services: Services) -> None:
    register_sample_base(services.database)
    job = running_job(services.database, "mood")
    accuracy = {"value": 0.8125, "low": 0.7, "high": 0.9, "n": 120}
    version = replace(sample_version("mood", job=job.id), metrics={"test": {"accuracy": accuracy}})
    with services.database.write() as session:
        VersionRepository(session).publish(version, sample_task("mood"), attempt=job.attempt, result={"version": 1})
    add_job(services.database, "mood")
    waits, published = browser.get("/jobs.json").json()["jobs"]
    assert (waits["result"], published["result"]["value"], published["result"]["metrics"]) == (
        None, 0.8125, {"accuracy": "81%"},
    )  # fmt: skip
    for page in (browser.get("/jobs").text, browser.get("/tasks/mood").text):
        assert "81%" in page
        assert "120 test rows" in page


def test_who_may_only_read_selects_nothing(reader: TestClient, services: Services) -> None:
    job = add_job(services.database, "mood").id
    page = reader.get("/jobs").text
    assert job in page
    assert "checkbox" not in page
    assert "/jobs/selected" not in page
    for place in ("/jobs/selected", "/jobs/matching"):
        assert reader.post(place, data={"change": "cancel", "job": job}).status_code == 403


def test_what_users_wrote_is_text_in_the_list(browser: TestClient, services: Services) -> None:
    add_job(services.database, "mood", owner=EVIL)
    fail(services.database, "mood", EVIL)
    without_quoted_scripts(browser.get("/jobs").text)
    without_quoted_scripts(browser.get("/jobs", params={"task": EVIL, "queue": EVIL, "owner": EVIL}).text)
    without_quoted_scripts(browser.get("/jobs", params={"state": EVIL}).text + "&lt;script&gt;alert")
    without_quoted_scripts(browser.post("/jobs/selected", data={"change": "cancel", "job": EVIL}).text)


def test_a_running_job_that_was_asked_to_stop_says_so(browser: TestClient, services: Services) -> None:
    add_job(services.database, "mood")
    job = claim_job(services.database)
    browser.post(f"/jobs/{job.id}/cancel")
    assert "stopping" in browser.get("/jobs").text
