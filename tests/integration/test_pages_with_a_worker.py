"""The pages in a real browser, with a real worker that learns on the tiny base."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import chromium
from support.real_jobs import Desk
from support.real_services import wait_until

from bench.harness.programs import PROGRAM, environment_of
from bench.harness.server import serving
from onboard.api.app import create_app
from onboard.bases import Base
from onboard.domain.access import ALL_SCOPES
from onboard.domain.job import Job
from onboard.hypernetworks.register import register_base
from onboard.operations.access import create_token
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.timeout(1800)]
ROWS = "".join(
    json.dumps({"text": f"the film was {word} and {other} {number}", "label": label}) + "\n"
    for number in range(15)
    for word, other, label in (("good", "great", "glad"), ("bad", "awful", "sad"))
)


def jobs_of(services: Services) -> Sequence[Job]:
    with services.database.read() as session:
        return JobRepository(session).list()


@dataclass
class Place:
    """A service in use: its server, a worker of it, and a token of every scope."""

    services: Services
    url: str
    token: str


@pytest.fixture(scope="module")
def place(tiny_base: Base, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One for all tests of this file."""
    folder = tmp_path_factory.mktemp("place")
    services = open_services(Settings(home=folder / "home", base=str(tiny_base.folder), device="cpu"))
    register_base(services, tiny_base)
    token = create_token(services.database, "tester", list(ALL_SCOPES))[1]
    environment = environment_of(services.settings)
    with (folder / "worker.log").open("wb") as log, serving(services.settings, folder / "server.log") as server:
        worker = subprocess.Popen([PROGRAM, "worker", "--name", "w1"], env=environment, stdout=log, stderr=log)
        try:
            yield Place(services, server.url, token)
        finally:
            worker.terminate()
            worker.wait(60)
            services.close()


def drop(page: playwright.Page, field: str, file: Path) -> None:
    """Drag a file from outside of the browser onto a field."""
    box = page.locator(field).bounding_box()
    assert box is not None
    devtools = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "data": data}
    for kind in ("dragEnter", "dragOver", "drop"):
        devtools.send("Input.dispatchDragEvent", {"type": kind, **at})


def test_a_dropped_file_is_checked_submitted_and_watched_to_its_end(browser, place: Place, tmp_path: Path) -> None:
    expect = playwright.expect
    (tmp_path / "mood.jsonl").write_text(ROWS)
    page = chromium.readers_page(browser, place.url, place.token)
    page.goto("/submit")
    wrong = ROWS + '{"text": "", "label": "glad"}\n'
    page.set_input_files("#dataset", [{"name": "mood.jsonl", "mimeType": "", "buffer": wrong.encode()}])
    page.get_by_role("button", name="Check only").click()
    expect(page.locator("#checks td").first).to_have_text("31")  # the row
    page.set_input_files("#dataset", [])
    drop(page, "#dataset", tmp_path / "mood.jsonl")
    page.get_by_role("button", name="Check only").click()
    expect(page.locator("#checks")).to_contain_text("30 training rows")
    page.get_by_text("All options of").click()
    page.select_option("#tune_hypernetwork", "never")
    page.fill("#init", "sst2")
    page.route("**/submit?key=*", lambda route: route.abort())  # the upload fails halfway
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Send it again")
    assert jobs_of(place.services) == []
    page.unroute("**/submit?key=*")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator(".state.succeeded")).to_be_visible()  # without loading the page again
    assert page.locator(".timeline li.done").all_inner_texts()[0].startswith("wait")
    assert len(jobs_of(place.services)) == 1
    page.set_viewport_size(chromium.PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= chromium.PHONE["width"]  # with all its charts
    page.goto("/tasks/mood")
    page.fill("#text", "a good film")
    page.get_by_role("button", name="Answer").click()
    expect(page.locator("#answer")).to_contain_text("%")
    page.context.close()


def test_a_worker_is_drained_and_leaves(browser, place: Place) -> None:
    page = chromium.readers_page(browser, place.url, place.token)
    page.on("dialog", lambda dialog: dialog.accept())
    row = page.locator("tr", has_text="w1")
    row.get_by_role("button", name="Drain").click()
    playwright.expect(row).to_have_count(0)

    def stopped() -> bool:
        with place.services.database.read() as session:
            return WorkerRepository(session).list() == []

    wait_until(stopped, 120.0, "the worker to leave")
    page.context.close()


def test_versions_are_compared_promoted_and_rolled_back(browser, rivals: Desk) -> None:
    expect = playwright.expect
    token = create_token(rivals.services.database, "tester", list(ALL_SCOPES))[1]
    with chromium.listening(create_app(rivals.services.settings)) as port:
        page = chromium.readers_page(browser, f"http://127.0.0.1:{port}", token)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto("/tasks/mood")
        page.get_by_role("button", name="Compare").click()
        expect(page.get_by_role("heading", name="Answers that changed")).to_be_visible()
        late = page.context.new_page()
        late.goto("/tasks/mood")
        page.goto("/tasks/mood")
        for version, because in (("v1", "the first"), ("v2", "the newest")):
            page.select_option("form[action$=promote] select", label=version)
            page.fill("form[action$=promote] [name=because]", because)
            page.get_by_role("button", name="Promote").click()
            expect(page.get_by_role("heading", name=f"production means {version}")).to_be_visible()
        page.locator("form[action$=rollback]", has=page.locator("[value=production]")).get_by_role("button").click()
        expect(page.get_by_role("heading", name="production means v1")).to_be_visible()
        expect(page.get_by_text("promoted: the newest")).to_be_visible()
        late.get_by_role("button", name="Promote").click()  # it saw what was before all that
        expect(late.get_by_role("alert")).to_contain_text("is now v1")
        page.context.close()
