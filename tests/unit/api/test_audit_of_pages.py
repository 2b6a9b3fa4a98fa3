"""What somebody changes by a form of a page leaves one line in the log of changes, as it does over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.audited import OF_PAGES
from support.browsing import signed_in
from support.registry_samples import add_job
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.domain.access import ALL_SCOPES, Scope
from onboard.operations.access import offer_code, sign_in_by_code
from onboard.registry.services import Services

Lines = Callable[[], list[dict[str, Any]]]
CHANGES: Final = {  # path of every form that changes something, and what its lines may say
    "/submit": {"job.submit"},
    "/jobs/{job}/cancel": {"job.cancel"},
    "/jobs/{job}/retry": {"job.retry"},
    "/jobs/selected": {"job.cancel", "job.retry"},  # a line for each job
    "/jobs/matching": {"job.cancel", "job.retry"},
    "/queue/pause": {"queue.pause"},
    "/queue/resume": {"queue.resume"},
    "/workers/drain": {"worker.drain"},
    "/tasks/{task}/promote": {"alias.promote"},
    "/tasks/{task}/rollback": {"alias.rollback"},
    "/hypernetworks/{version}/revert": {"hypernetwork.revert"},
    "/tokens": {"token.create"},
    "/tokens/limit": {"quota.set"},
    "/tokens/revoke": {"token.revoke"},
    "/sessions/end": {"session.end"},
}
CHANGE_NOTHING: Final = {
    "/submit/check", "/tasks/{task}/try", "/tasks/{task}/compare", "/tasks/{task}/evaluate",
    "/jobs/{job}/relabeled.jsonl",
}  # fmt: skip
AS_SUBMIT: Final = {  # they do what /submit does; see test_relabeling and test_changed_tasks
    "/jobs/{job}/relabel", "/tasks/{task}/rows", "/tasks/{task}/labels",
}  # fmt: skip


@pytest.fixture
def browser(app: FastAPI, stage: Services) -> Iterator[TestClient]:
    """Somebody who may everything, with a session of the token `tester`."""
    with signed_in(app, stage.database, *ALL_SCOPES) as client:
        yield client


@pytest.fixture
def jobs(stage: Services) -> list[str]:
    """Two jobs that wait in a queue of their own."""
    return [add_job(stage.database, "weather", queue="slow").id for _ in range(2)]


def test_every_form_is_in_one_of_the_tables() -> None:
    assert {("POST", path) for path in CHANGES.keys() | CHANGE_NOTHING | AS_SUBMIT} == OF_PAGES


def test_every_change_by_a_form_leaves_one_line_that_says_who_did_what_to_what(
    browser: TestClient, rows: bytes, jobs: list[str], stage: Services, tiny_base: Base, new_lines: Lines
) -> None:
    actor = browser.get("/v1/me").json()["actor"]
    assert actor.startswith("tester (")
    tuned_head(stage, tiny_base, scale=0)
    new_lines()
    done: dict[str, set[str]] = {}

    def check(path: str, action: str, subjects: list[str], answer: Any) -> Any:
        assert answer.status_code < 400, answer.text
        lines = sorted((line["action"], line["subject"], line["actor"]) for line in new_lines())
        assert lines == sorted((action, subject, actor) for subject in subjects), path
        done.setdefault(path, set()).add(action)
        return answer

    def post(path: str, action: str, subject: str, **form: object) -> Any:
        names = {"job": subject, "task": "mood", "version": 1}
        return check(path, action, [subject], browser.post(path.format(**names), data=form))

    answer = browser.post("/submit?key=once", files={"dataset": ("weather.jsonl", rows)})
    job = answer.headers["location"].removeprefix("/jobs/")
    check("/submit", "job.submit", [job], answer)
    post("/jobs/{job}/cancel", "job.cancel", job)
    post("/jobs/{job}/retry", "job.retry", job)
    for path, choice in (("/jobs/selected", {"job": jobs}), ("/jobs/matching", {"queue": "slow"})):
        for change in ("cancel", "retry"):
            check(path, f"job.{change}", jobs, browser.post(path, data={"change": change, **choice}))
    post("/queue/pause", "queue.pause", "nightly", queue="nightly")
    post("/queue/resume", "queue.resume", "nightly", queue="nightly")
    post("/workers/drain", "worker.drain", "w1", worker="w1")
    for version, seen in ((1, 0), (2, 1)):
        post("/tasks/{task}/promote", "alias.promote", "mood@good", version=version, alias="good", seen=f"good={seen}")
    post("/tasks/{task}/rollback", "alias.rollback", "mood@good", alias="good", seen=2)
    head = f"{tiny_base.name} v1"
    post("/hypernetworks/{version}/revert", "hypernetwork.revert", head, base=tiny_base.digest)
    made = browser.post("/tokens", data={"name": "shop", "scope": ["read"]})
    tokens = browser.get("/tokens.json").json()["tokens"]
    (token,) = [token["id"] for token in tokens if token["name"] == "shop"]
    check("/tokens", "token.create", [token], made)
    post("/tokens/limit", "quota.set", "shop", owner="shop", max_jobs="3")
    post("/tokens/revoke", "token.revoke", token, token=token)
    sign_in_by_code(stage.database, offer_code(stage.database))
    new_lines()
    local = browser.get("/tokens.json").json()["sessions"][-1]
    post("/sessions/end", "session.end", "local", session=local["id"])
    assert done == CHANGES


def test_what_changes_nothing_leaves_no_line(browser: TestClient, rows: bytes, new_lines: Lines) -> None:
    new_lines()
    answers = [
        browser.post("/submit/check", files={"dataset": ("weather.jsonl", rows)}),
        browser.post("/tasks/mood/try", data={"text": "what a day"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200]


def test_what_was_refused_leaves_no_line(
    app: FastAPI, browser: TestClient, jobs: list[str], stage: Services, new_lines: Lines
) -> None:
    with signed_in(app, stage.database, Scope.READ) as reader:
        new_lines()
        answers = [
            browser.post("/submit?key=once", files={"dataset": ("weather.jsonl", b"{}\n")}),
            browser.post(f"/jobs/{jobs[0]}/retry"),
            browser.post("/jobs/selected", data={"change": "cancel"}),
            browser.post("/queue/pause", data={"queue": "Not A Name"}),
            browser.post("/workers/drain", data={"worker": "nobody"}),
            browser.post("/tasks/mood/promote", data={"version": 1, "alias": "good", "seen": "good=7"}),
            browser.post("/tasks/mood/rollback", data={"alias": "latest", "seen": 7}),
            browser.post("/hypernetworks/9/revert", data={"base": "nothing"}),
            browser.post("/tokens", data={"scope": "all"}),
            browser.post("/tokens/revoke", data={"token": "nobody"}),
            reader.post(f"/jobs/{jobs[0]}/cancel"),
            reader.post("/tokens", data={"scope": "read"}),
            browser.post(f"/jobs/{jobs[0]}/cancel", headers={"Sec-Fetch-Site": "cross-site"}),
        ]
    assert [answer.status_code < 400 for answer in answers] == [False] * len(answers)


def test_of_several_jobs_only_those_that_were_changed_have_a_line(
    browser: TestClient, jobs: list[str], new_lines: Lines
) -> None:
    first, second = jobs
    browser.post(f"/jobs/{first}/cancel")
    new_lines()
    answer = browser.post("/jobs/selected", data={"change": "cancel", "job": [first, second, second, "0123456789ab"]})
    assert answer.status_code == 200
    assert [(line["action"], line["subject"]) for line in new_lines()] == [("job.cancel", second)]


def test_the_same_form_sent_twice_leaves_no_second_line(browser: TestClient, rows: bytes, new_lines: Lines) -> None:
    new_lines()
    places = {
        browser.post("/submit?key=once", files={"dataset": ("weather.jsonl", rows)}).headers["location"]
        for _ in range(2)
    }
    assert len(places) == 1
    assert [line["action"] for line in new_lines()] == ["job.submit"]
