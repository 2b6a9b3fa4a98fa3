"""The benches' pages are those of their stored numbers, and the commands that stand on pages are there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench import ablations, api, bells, first_version, kills, load, memory, pages, submitting, upload
from bench.chaos import report as chaos
from bench.curriculum import page as curriculum
from bench.drift import page as drift
from bench.guard import page as guard
from bench.harness.page import ANOTHER_BASE
from bench.probe import page as probe
from bench.queue import __main__ as queue
from bench.serve import page as serve
from onboard.bases import find_base

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
BASE = re.compile(r'"base": "(sha256:\w+)"')
PAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "ablations": ablations.page, "api": api.page, "bells": bells.page, "chaos": chaos.page,
    "curriculum": curriculum.page, "drift": drift.markdown, "first_version": first_version.page, "guard": guard.page,
    "kills": kills.page, "load": load.page, "pages": pages.page, "probe": probe.page, "queue": queue.page,
    "serve": serve.page, "submitting": submitting.page, "upload": upload.page, "worker_memory": memory.page,
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_its_stored_numbers_give(name: str) -> None:
    document = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    assert PAGES[name](document) == (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def test_every_command_of_a_bench_that_is_told_can_be_run() -> None:
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/**/*.py"), ROOT / "Makefile"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    commands = sorted(set(re.findall(r"-m (bench(?:\.\w+)+)", text)))
    assert len(commands) > 15
    for command in commands:
        spec = find_spec(command)
        assert spec is not None, command
        assert spec.submodule_search_locations is None or find_spec(f"{command}.__main__"), command


def test_a_page_of_another_base_than_the_one_that_ships_says_so() -> None:
    """Where no figure of a file is of today's `mini`, its page tells that before anything else."""
    shipped = find_base("mini").digest
    digests = {path: set(BASE.findall(path.read_text(encoding="utf-8"))) for path in RESULTS.glob("*.json*")}
    for path in (path for path, measured in digests.items() if measured):
        text = (RESULTS / f"{path.stem}.md").read_text(encoding="utf-8")
        assert (ANOTHER_BASE in text.split("\n\n")[1]) == (shipped not in digests[path]), path.name
