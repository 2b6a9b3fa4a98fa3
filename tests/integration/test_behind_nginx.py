"""Forms in a real browser by a name that is not this machine's: over plain HTTP, behind nginx, with TLS, below a path.

Browsers send Sec-Fetch-Site over HTTPS and to loopback only, so a test at 127.0.0.1 does not show what most people get.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import chromium, nginx
from support.browsing import app_without_base
from support.real_door import answering
from support.registry_samples import add_job, register_sample_base, sample_version

from bench.harness.browser import chromium as launched
from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token
from onboard.registry.services import Services

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.timeout(900)]
ROOT = "/at/onboard"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for which the name is this machine."""
    chromium.require()
    with launched(f"--host-resolver-rules=MAP {nginx.NAME} 127.0.0.1") as opened:
        yield opened


@pytest.fixture
def places(
    request: pytest.FixtureRequest, services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[str]]:
    """Where the service is offered."""
    how = request.param
    root = ROOT if how.startswith("path") else ""
    settings = services.settings.model_copy(
        update={"allowed_hosts": nginx.NAME, "root_path": root, "trusted_proxies": "127.0.0.1"}
    )
    monkeypatch.setattr("onboard.api.routes.hypernetworks._default_digest", lambda _: sample_version().base_digest)
    register_sample_base(services.database)
    with ExitStack() as stack:
        app = app_without_base(services, monkeypatch, settings)
        port = stack.enter_context(
            answering(app, start_seconds=120, proxy_headers=True, forwarded_allow_ips=["127.0.0.1"])
        )
        if how == "direct":
            yield [f"http://{nginx.NAME}:{port}"]
            return
        nginx.require()
        yield list(stack.enter_context(nginx.proxied(tmp_path, port, root, cuts=how == "path cut off")))


def _note(wrong: list[str], message: Any) -> None:
    """Errors, but for the one header that browsers have no use for over plain HTTP."""
    if message.type == "error" and "Cross-Origin-Opener-Policy" not in message.text:
        wrong.append(f"{message.text} {message.location}")


@pytest.mark.parametrize("places", ["direct", "nginx", "path", "path cut off"], indirect=True)
def test_forms_links_and_live_parts_work(browser: Any, places: list[str], services: Services) -> None:
    expect = playwright.expect
    secret = create_token(services.database, "tester", list(ALL_SCOPES))[1]
    for url in places:
        job = add_job(services.database, "mood").id
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        wrong: list[str] = []
        page.on("console", partial(_note, wrong))
        page.goto(f"{url}/login")
        page.fill("#token", secret)
        page.click("button")
        expect(page.locator("nav [aria-current=page]")).to_have_text("Overview")
        assert page.url == f"{url}/"
        (cookie,) = context.cookies()
        assert cookie["secure"] is url.startswith("https")
        page.get_by_role("button", name="Pause").click()  # a form of the page
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        page.goto(f"{url}/jobs/{job}")
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("button", name="Retry")).to_be_visible()
        page.get_by_role("link", name="Submit", exact=True).click()
        rows = "".join(f'{{"text": "day {row}", "label": "{"ab"[row % 2]}"}}\n' for row in range(40))
        files = [{"name": "weather.jsonl", "mimeType": "application/json", "buffer": rows.encode()}]
        page.set_input_files("#dataset", files)
        page.get_by_role("button", name="Check only").click()  # htmx sends it
        expect(page.get_by_text("nothing was queued")).to_be_visible()
        page.get_by_role("link", name="Overview", exact=True).click()
        add_job(services.database, "just-now")
        expect(page.get_by_role("link", name="just-now").first).to_be_visible()  # the live part of the page
        assert wrong == [], wrong
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#token")).to_be_visible()
        assert page.url == f"{url}/login"
        assert context.cookies() == []
        page.goto("about:blank")
        context.close()
