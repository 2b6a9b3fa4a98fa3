"""Debian's Chromium, driven by Playwright: what a reader of the pages sees."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bench.harness.command import CHECKOUT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE: Final = CHECKOUT / "tests" / "support" / "axe" / "axe.min.js"
PROGRAM: Final = "chromium"
# The policy that the pages come with lets no script in from elsewhere; axe is handed in past it.
_AXE_RULES: Final = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def absent() -> str | None:
    """The missing parts to run a browser; None if nothing is."""
    return None if shutil.which(PROGRAM) else PROGRAM


@contextmanager
def chromium(*args: str) -> Iterator[Browser]:
    """A browser without a window; `args` are more of its command line."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which(PROGRAM), args=["--no-sandbox", *args])
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, url: str, token: str, timeout_ms: float, **context: Any) -> Page:
    """A page whose reader has signed in by the form; it shows the overview.

    Args:
        url: of the service.
        timeout_ms: for which each step may wait.
        context: of the browser: colour scheme, viewport, time zone.
    """
    page = browser.new_context(base_url=url, **context).new_page()
    page.set_default_timeout(timeout_ms)
    page.goto("/login")
    page.fill("#token", token)
    page.click("button")
    page.wait_for_selector("nav [aria-current=page]")
    return page


def violations(page: Page) -> list[str]:
    """The findings of axe on a page, for WCAG AA: the rule, and where."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    answer: dict[str, Any] = page.evaluate("rules => axe.run(document, rules)", _AXE_RULES)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in answer["violations"]
        for node in rule["nodes"]
    ]
