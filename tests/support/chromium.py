"""Debian's Chromium, driven by Playwright, and the pages behind a real server that it looks at."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from fastapi import FastAPI

from onboard.api.deadlines import Deadlines
from onboard.api.serve import listen
from support.real_services import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"
PROGRAM: Final = "chromium"
_START_SECONDS: Final = 120.0
# The policy that the pages come with lets no script in from elsewhere; the tests hand axe in past it.
_AXE_RULES: Final = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def absent() -> str | None:
    """What is missing to run a browser; None if nothing is."""
    return None if shutil.which(PROGRAM) else PROGRAM


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which(PROGRAM), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def listening(app: FastAPI, port: int = 0) -> Iterator[int]:
    """The port at which the application answers meanwhile; streams of events end with it."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=5, timeout_keep_alive=600, http=Deadlines
    )
    server = uvicorn.Server(config)
    with closing(listen("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started, _START_SECONDS)
            yield listener.getsockname()[1]
        finally:
            app.state.readers.end()
            server.should_exit = True
            thread.join()


def violations(page: Page) -> list[str]:
    """What axe finds wrong on a page, for WCAG AA: the rule, and where."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found_by_axe: dict[str, Any] = page.evaluate("rules => axe.run(document, rules)", _AXE_RULES)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found_by_axe["violations"]
        for node in rule["nodes"]
    ]
