"""The pages in a real browser against a real server."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support import chromium
from support.browsing import app_without_base, fail
from support.registry_samples import add_job, register_sample_base, running_job, sample_task, sample_version
from support.suspected import job_with_suspects
from support.watched_jobs import ended_together, running, worker

from onboard import report
from onboard.domain.access import ALL_SCOPES, Scope
from onboard.domain.job import JobState, Stage
from onboard.operations.access import create_token, offer_code, revoke_token
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.versions.likeness import Traits
from onboard.versions.task_map import Mapped

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.timeout(1800)]
LONG_SECONDS = 3600.0  # for which a worker lives that nobody runs
PLACES = (
    "/",
    "/jobs",
    "/jobs/{job}",
    "/tasks",
    "/tasks/mood",
    "/hypernetworks",
    "/submit",
    "/tokens",
    "/audit",
    "/webhooks",
)


@pytest.fixture
def app(services: Services, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onboard.api.routes.hypernetworks._default_digest", lambda _: sample_version().base_digest)
    register_sample_base(services.database)
    return app_without_base(services, monkeypatch)


@pytest.fixture
def token(services: Services) -> str:
    return create_token(services.database, "tester", list(ALL_SCOPES))[1]


def opened(browser: playwright.Browser, port: int, token: str, **context) -> playwright.Page:
    """A page whose reader has signed in by the form."""
    return chromium.readers_page(browser, f"http://127.0.0.1:{port}", token, **context)


def test_it_is_live_and_acts_in_place_and_recovers_when_the_server_comes_back(
    browser, app, services: Services, token: str
) -> None:
    expect = playwright.expect
    worker(services.database, "w1", silent=-LONG_SECONDS)
    with chromium.listening(app) as port:
        page = opened(browser, port, token)
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        expect(page.get_by_text("No job failed.")).to_be_visible()
        fail(services.database, "mood", "The disk is full.")
        expect(page.get_by_text("1 × The disk is full.")).to_be_visible()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Drain").click()
        expect(page.locator(".state.draining")).to_be_visible()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        assert problems == []
    expect(page.locator("#live[aria-busy=true]")).to_be_attached()
    add_job(services.database, "meanwhile")
    with chromium.listening(app, port):
        expect(page.get_by_role("link", name="meanwhile")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("j")
        page.wait_for_url("**/jobs")
        page.keyboard.press("/")
        expect(page.locator("[data-search]")).to_be_focused()
        page.locator("[data-search]").blur()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.context.close()


def test_jobs_by_the_hundred_one_job_and_a_token_that_ends_in_the_middle(
    browser, app, services: Services, token: str
) -> None:
    expect = playwright.expect
    ended_together(services.database, 500, JobState.FAILED)
    for _ in range(101):
        add_job(services.database, "mood")
    with chromium.listening(app) as port:
        page = opened(browser, port, token)
        page.on("dialog", lambda dialog: dialog.accept())
        for state, change, outcome in (("queued", "cancel", "101 cancelled"), ("failed", "retry", "500 queued again")):
            page.goto(f"/jobs?state={state}")
            page.locator(f'button[formaction="/jobs/matching"][value="{change}"]').click()
            expect(page.get_by_text("That is all.")).to_be_visible()
            expect(page.locator("#progress")).to_contain_text(outcome)
        worker(services.database, "w2", silent=-LONG_SECONDS)
        job = running(services.database, "w2", ago=20, stage=Stage.TRAIN, note="step 1")
        page.goto(f"/jobs/{job.id}")
        expect(page.get_by_text("step 1").first).to_be_visible()
        with services.database.write() as session:
            ClaimRepository(session).append(job.id, job.attempt, "note", "step 2")
        expect(page.get_by_text("step 2").first).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_text("stopping at its next step")).to_be_visible()
        page.goto("/jobs")
        revoke_token(services.database, "tester")
        add_job(services.database, "other")
        expect(page.locator("#token")).to_be_visible()  # by itself, and leads back
        assert page.url.endswith("/jobs")
        page.context.close()


def test_who_may_only_read_has_no_buttons_and_links_from_elsewhere_find_him(browser, app, services: Services) -> None:
    expect = playwright.expect
    worker(services.database, "w1", silent=-LONG_SECONDS)
    job = fail(services.database, "mood", "The disk is full.")
    _, secret = create_token(services.database, "reader", [Scope.READ])
    with chromium.listening(app) as port:
        page = opened(browser, port, secret)
        url = f"http://127.0.0.1:{port}"
        for place in ("/", "/jobs", f"/jobs/{job}"):
            page.goto(place)
            assert page.get_by_role("button").all_inner_texts() in (["Sign out"], ["Sign out", "Show"]), place
        here = "path => fetch(path, {method: 'POST'}).then(answer => answer.status)"
        assert page.evaluate(here, f"/jobs/{job}/retry") == 403
        elsewhere = f'''<a href="{url}/jobs/{job}">the job</a>
            <form method="post" action="{url}/logout"><button>Free holidays</button></form>'''
        page.route("http://elsewhere.example/**", lambda route: route.fulfill(body=elsewhere, content_type="text/html"))
        page.goto("http://elsewhere.example/")
        page.get_by_role("link", name="the job").click()
        expect(page.get_by_text("The disk is full.").first).to_be_visible()
        page.goto("http://elsewhere.example/")
        page.get_by_role("button", name="Free holidays").click()
        expect(page.get_by_role("alert")).to_contain_text("nothing was changed")  # not even the cookie came along
        page.goto(f"{url}/nothing")
        expect(page.get_by_role("alert")).to_contain_text("There is nothing at /nothing.")
        page.get_by_role("link", name="Overview", exact=True).first.click()  # and is signed in still
        expect(page.locator("th", has_text="w1")).to_be_visible()
        page.context.close()


def test_without_scripts_everything_is_readable_and_forms_work(browser, app, services: Services) -> None:
    expect = playwright.expect
    worker(services.database, "w1", silent=-LONG_SECONDS)
    with chromium.listening(app) as port:
        page = browser.new_context(base_url=f"http://127.0.0.1:{port}", java_script_enabled=False).new_page()
        page.set_default_timeout(chromium.SLOW_MS)
        page.goto(f"/login?code={offer_code(services.database)}")
        expect(page.locator("th", has_text="w1")).to_be_visible()
        page.get_by_role("button", name="Drain").click()
        expect(page.locator(".state.draining")).to_be_visible()
        page.goto("/submit")
        rows = "".join(f'{{"text": "day {row}", "label": "{"ab"[row % 2]}"}}\n' for row in range(40))
        files = [{"name": "weather.jsonl", "mimeType": "application/json", "buffer": rows.encode()}]
        page.set_input_files("#dataset", files)
        page.get_by_role("button", name="Check only").click()
        expect(page.get_by_text("nothing was queued")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#token")).to_be_visible()
        page.context.close()


def test_a_row_with_a_wrong_label_gets_another_one_and_is_learned_again(
    browser, app, services: Services, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, sent = job_with_suspects(services), []

    def add(task, addition, owner, size, left):
        sent.append(Path(addition.dataset).read_text(encoding="utf-8"))
        return SimpleNamespace(job=add_job(services.database, task))

    monkeypatch.setattr("onboard.api.pages.job.start_worker", lambda *_: False)
    with chromium.listening(app) as port:
        app.state.intake.add = add
        page = opened(browser, port, token, viewport=chromium.PHONE)
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Correct labels (3)").click()
        page.get_by_label("Label of row 1").select_option(label="dog (more likely)")
        page.get_by_role("button", name="Correct these labels and retrain").click()
        page.wait_for_url(lambda url: "/jobs/" in url and job not in url)
        playwright.expect(page.get_by_text("queued").first).to_be_visible()
        page.context.close()
    rows = [json.loads(line) for line in sent[0].splitlines()]
    assert {row["label"] for row in rows if row["text"] == "it barks"} == {"dog"}


@pytest.mark.parametrize("element", ["span", "code", "strong", "a", "small"])
def test_a_name_that_turns_the_direction_of_writing_turns_only_itself(browser, element: str) -> None:
    style = (Path(report.__file__).parent / "style.html").read_text(encoding="utf-8")
    name = f"<{element}>\u202elive</{element}>"  # and never turns it back
    page = browser.new_page()
    page.set_content(f"<style>{style}</style><p>{name} <i id=first>12</i><i id=second>34</i></p>")
    first, second = (page.locator(place).bounding_box() for place in ("#first", "#second"))
    assert first["x"] < second["x"], "the words after it stand in their order"
    page.close()


def test_a_task_is_found_on_the_map_by_part_of_its_name(
    browser, app, services: Services, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(0).standard_normal((14, 8))
    tasks = [Mapped(f"task-{n}", 1, "b", n < 7, False, Traits(z=z)) for n, z in enumerate(numbers)]
    monkeypatch.setattr("onboard.versions.task_map.mapped_tasks", lambda *_: tasks)
    with chromium.listening(app) as port:
        page = opened(browser, port, token, viewport=chromium.PHONE)
        page.goto("/map")
        page.locator("[data-search]").fill("sk-13")
        playwright.expect(page.locator("#matching")).to_have_text("1 of 14 tasks")
        assert page.evaluate("document.documentElement.scrollWidth") <= chromium.PHONE["width"]
        page.context.close()


def test_an_operation_of_the_reference_is_tried_out_and_nothing_comes_from_elsewhere(
    browser, app, services: Services, token: str
) -> None:
    expect = playwright.expect
    with chromium.listening(app) as port:
        page = opened(browser, port, token)
        here = f"http://127.0.0.1:{port}/"
        wrong: list[str] = []
        page.on(
            "console",
            lambda message: (
                wrong.append(message.text)
                if message.type == "error" and not message.text.startswith("Deprecated: ")  # of the viewer, on itself
                else None
            ),
        )
        page.on("request", lambda sent: None if sent.url.startswith((here, "data:")) else wrong.append(sent.url))
        page.goto("/docs#/tasks/list_tasks")
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute").click()
        expect(page.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text("200")
        expect(page.locator(".live-responses-table")).to_contain_text('"tasks"')
        assert wrong == []
        page.set_viewport_size(chromium.PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= chromium.PHONE["width"]
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(browser, app, services: Services, token: str, scheme: str) -> None:
    database = services.database
    worker(
        database,
        "w1",
        silent=-LONG_SECONDS,
        gpus=[{"name": "H100", "memory_used_bytes": 2**30, "memory_total_bytes": 2**33}],
    )
    running(database, "w1", ago=20, stage=Stage.TRAIN, note="step 1")
    failed = fail(database, "mood", "The disk is full.")
    for _ in range(2):
        job = running_job(database, "mood")
        version = sample_version("mood", job=job.id)
        with database.write() as session:
            VersionRepository(session).publish(version, sample_task("mood"), attempt=job.attempt, result={})
    with chromium.listening(app) as port:
        page = opened(browser, port, token, color_scheme=scheme, viewport=chromium.PHONE)
        wrong: dict[str, object] = {}
        for place in PLACES:
            page.goto(place.format(job=failed))
            if listed := chromium.violations(page):
                wrong[place] = listed
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > chromium.PHONE["width"]:
                wrong[f"{place} is wide"] = wide
        assert wrong == {}
        page.context.close()
