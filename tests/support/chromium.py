"""Debian's Chromium, driven by Playwright, and the pages behind a real server that it looks at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI

from support.real_door import answering

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


def listening(app: FastAPI, port: int = 0) -> AbstractContextManager[int]:
    """The port at which the application answers meanwhile, with the patience that a browser on a busy machine needs."""
    return answering(app, port=port, start_seconds=_START_SECONDS, timeout_keep_alive=600)


def violations(page: Page) -> list[str]:
    """What axe finds wrong on a page, for WCAG AA: the rule, and where."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found_by_axe: dict[str, Any] = page.evaluate("rules => axe.run(document, rules)", _AXE_RULES)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found_by_axe["violations"]
        for node in rule["nodes"]
    ]
