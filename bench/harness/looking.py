"""The pages as a reader sees them in a real browser: when they are painted, when a change is on them, what axe says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from bench.harness.browser import opened, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCHEMES: Final = ("light", "dark")
_PATIENCE_MS: Final = 60_000.0
_PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def painted_ms(browser: Browser, url: str, token: str, loads: int) -> list[float]:
    """Milliseconds from asking for the overview to its first paint, each time by a browser that has nothing stored."""
    taken = []
    for _ in range(loads):
        page = opened(browser, url, token, _PATIENCE_MS)
        state = page.context.storage_state()
        page.context.close()
        context = browser.new_context(base_url=url, storage_state=state)
        fresh = context.new_page()
        fresh.goto("/")
        while (painted := fresh.evaluate(_PAINTED)) is None:  # `wait_for_function` may eval, which the page forbids
            fresh.wait_for_timeout(10)
        taken.append(float(painted))
        context.close()
    return taken


def shown_seconds(
    browser: Browser, url: str, token: str, place: str, change: Callable[[int], str], times: int
) -> list[float]:
    """Seconds from a change that the database has to its being on an open page.

    Args:
        place: of the page.
        change: makes the nth change and returns the text that it puts on the page.
    """
    page = opened(browser, url, token, _PATIENCE_MS)
    page.goto(place)
    taken = []
    for number in range(times):
        page.wait_for_timeout(1_000 + 370 * (number % 5))  # so that changes meet the page in any moment of its rhythm
        text = change(number)
        begun = time.monotonic()
        page.get_by_text(text).first.wait_for()
        taken.append(time.monotonic() - begun)
    page.context.close()
    return taken


def accessible(browser: Browser, url: str, token: str, places: Mapping[str, str]) -> dict[str, list[str]]:
    """The findings of axe on each page, light and dark; pages without a fault are left out."""
    wrong: dict[str, list[str]] = {}
    for scheme in SCHEMES:
        page: Any = opened(browser, url, token, _PATIENCE_MS, color_scheme=scheme)
        for name, place in places.items():
            page.goto(place)
            if faults := violations(page):
                wrong[f"{name}, {scheme}"] = faults
        page.context.close()
    return wrong
