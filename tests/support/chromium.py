"""Debian's Chromium, driven by Playwright, and the pages behind a real server that it looks at."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

import pytest
from fastapi import FastAPI

from bench.harness.browser import absent, chromium, opened, violations
from support.real_door import answering

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["PHONE", "SLOW_MS", "chromium", "listening", "readers_page", "require", "violations"]

SLOW_MS: Final = 240_000  # whoever waits for a page on a busy machine
PHONE: Final = {"width": 390, "height": 844}
_START_SECONDS: Final = 120.0


def require() -> None:
    """A missing browser skips on a laptop and fails in CI."""
    pytest.importorskip("playwright.sync_api")
    if program := absent():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{program} is not installed, and CI=true")
        pytest.skip(f"{program} is not installed (apt-get install chromium)")


def readers_page(browser: Any, url: str, token: str, **context: Any) -> Page:
    """A page whose reader has signed in, and who has patience; it shows the overview."""
    from playwright.sync_api import expect

    expect.set_options(timeout=SLOW_MS)
    return opened(browser, url, token, SLOW_MS, **context)


def listening(app: FastAPI, port: int = 0) -> AbstractContextManager[int]:
    """The port at which the application answers meanwhile, with the patience that a browser on a busy machine needs."""
    return answering(app, port=port, start_seconds=_START_SECONDS, timeout_keep_alive=600)
