"""The measurement of the pages: it does what it says, in small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.chromium import listening

from bench import pages
from onboard.api.app import create_app
from onboard.registry.services import Services
from onboard.settings import Settings

SIZES = pages.Sizes(jobs=3, tasks=2, versions=4, requests=2, warm_up=1, open_pages=2, rounds=2, looks=0)


@contextmanager
def in_this_process(settings: Settings, _log: Path, _core: int | None) -> Iterator[Any]:
    with listening(create_app(settings)) as port:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", process=SimpleNamespace(pid=os.getpid()))


def test_every_page_is_asked_for_and_others_are_measured_beside_open_ones(
    tiny_services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "serving", in_this_process)
    monkeypatch.setattr(pages, "_STANDING_SECONDS", 0.1)
    figures = pages.measure(tiny_services.settings, tmp_path, SIZES)
    assert figures["pages"].keys() == pages.pages_of("").keys()
    assert all(taken["n"] == 2 for taken in figures["pages"].values())
    assert 50_000 < figures["first_page_bytes"] < pages.WANTED_BYTES
    assert figures["beside_open_pages"]["n"] == figures["alone"]["n"] == 8
    assert len(figures["share_of_rounds"]) == 2


def test_what_is_missed_is_said() -> None:
    taken = {"p50": 1.0, "p95": 101.0, "p99": 200.0, "computed": 20.5}
    figures = {
        "pages": {"jobs": taken},
        "first_page_bytes": 1,
        "alone": {"p99": 1.0},
        "beside_open_pages": {"p99": 1.1},
        "cores": 0.01,
        "share_of_rounds": [0.0, 0.1, 0.2],
        "nothing": taken,
        "browser": {
            "painted_ms": [900.0, 1100.0, 1200.0],
            "shown_seconds": {"overview": [1.0, 2.5, 3.0]},
            "faults_of_accessibility": {"map, dark": ["color-contrast"]},
            "pages_looked_at": 30,
        },
    }
    document = {
        "sizes": {"jobs": 1, "tasks": 1, "versions": 1, "requests": 1, "open_pages": 50},
        "load": [1.0, 1.0, 1.0], "places": {"sqlite": figures}, "command": "x",
        "machine": {"cores": 2, "processor": "y"},
    }  # fmt: skip
    shown = pages.page(document)
    missed = "jobs, requests while pages are open, first paint, a change on overview, accessibility: map, dark"
    assert f"Missed on SQLite: {missed}." in shown
    assert "101.0 **missed**" in shown
