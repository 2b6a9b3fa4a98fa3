"""What the pages cost a real server on one core, with many jobs, tasks and versions, and what open pages cost others.

    python -m bench.pages --output bench/results/pages.json --table docs/results/pages.md

Milliseconds of whole requests, one after another over one kept connection, after a warm-up; the server has one core
for itself. Open pages follow the server's events and ask for the overview at each, while one job a second is submitted.
Exits with 1 when a page is slower or heavier than is wanted, or open pages slow others down more than that.
"""

from __future__ import annotations

import http.client
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.api import percentiles
from bench.harness.command import asked_sizes, command_line
from bench.harness.deployed import PLACES, analyse, deployed, measurable
from bench.harness.many_jobs import add_jobs, add_tasks
from bench.harness.page import made_on, table, table_row
from bench.harness.report import made_by, report
from bench.harness.server import Asker, serving
from onboard.domain.access import Scope
from onboard.hypernetworks.register import register_base
from onboard.operations.access import create_token
from onboard.services import Services, open_services
from onboard.settings import Settings

WANTED_MS: Final = 100.0  # of server time, 95th percentile, for each page
WANTED_BYTES: Final = 150_000  # of the first page with all that it loads
WANTED_SHARE: Final = 0.05  # by which open pages may raise the 99th percentile of another request
_HTML: Final = {"Accept": "text/html"}
_OTHER: Final = "/v1/tasks/sst2/embeddings/latest"
_FILES: Final = ("onboard.css", "htmx.js", "pages.js")


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        jobs: that ended, a hundredth of them failed.
        tasks: with `versions` of all of them together.
        requests: of each page.
        warm_up: requests of each page that do not count.
        open_pages: that follow meanwhile.
    """

    jobs: int = 10_000
    tasks: int = 2_000
    versions: int = 200_000
    requests: int = 200
    warm_up: int = 5
    open_pages: int = 50


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    asked, sizes = asked_sizes(command_line(__doc__), Sizes(), arguments)
    places = {name: measured_at(name, sizes) for name in measurable()}
    limits = {"page_ms": WANTED_MS, "first_page_bytes": WANTED_BYTES, "share_of_others": WANTED_SHARE}
    document = {
        **made_by("python -m bench.pages"), "sizes": asdict(sizes), "wanted_at_most": limits, "places": places,
        "kept": not any(_missed(figures) for figures in places.values()),
    }  # fmt: skip
    return report(document, asked, page)


def measured_at(name: str, sizes: Sizes) -> dict[str, Any]:
    """The figures of one place."""
    with deployed(name) as (settings, folder):
        return measure(settings, folder, sizes, min(os.sched_getaffinity(0)))


def measure(settings: Settings, folder: Path, sizes: Sizes, core: int | None = None) -> dict[str, Any]:
    """Every page's milliseconds, the first page's bytes, and another request with and without open pages.

    Args:
        core: of the server.
    """
    with closing(open_services(settings)) as services:
        token, job = fill(services, sizes)
        kinds = pages_of(job)
        with serving(settings, folder / "server.log", core) as server, closing(Asker(server.url, token)) as asker:
            pages = {what: timed(asker, place, sizes.requests, sizes.warm_up, _HTML) for what, place in kinds.items()}
            first_bytes = sum(asker.size(place, _HTML) for place in ("/", *(f"/static/{name}" for name in _FILES)))
            alone = timed(asker, _OTHER, 10 * sizes.requests, sizes.warm_up)
            with submitted_meanwhile(services), opened(server.url, token, sizes.open_pages):
                beside = timed(asker, _OTHER, 10 * sizes.requests, sizes.warm_up)
    return {"pages": pages, "first_page_bytes": first_bytes, "alone": alone, "beside_open_pages": beside}


def pages_of(job: str) -> dict[str, str]:
    """The pages that are asked for, by name."""
    return {
        "overview": "/", "jobs": "/jobs", "failed jobs": "/jobs?state=failed", "one job": f"/jobs/{job}",
        "tasks": "/tasks", "tasks by name": "/tasks?name=99", "one task": "/tasks/sst2",
        "shipped tasks": "/tasks?shipped=yes", "hypernetworks": "/hypernetworks", "submit": "/submit",
    }  # fmt: skip


def fill(services: Services, sizes: Sizes) -> tuple[str, str]:
    """Jobs, tasks and versions; returns a token, and the id of a job."""
    from onboard.bases import find_base

    register_base(services, find_base(services.settings.base))
    with services.database.write() as session:
        job = add_jobs(session, sizes.jobs)
        add_tasks(session, sizes.tasks, sizes.versions)
    analyse(services.database)
    scopes = [Scope.READ.value, Scope.SUBMIT.value]
    return create_token(services.database, "bench", scopes)[1], job


def timed(
    asker: Asker, place: str, requests: int, warm_up: int, headers: dict[str, str] | None = None
) -> dict[str, float]:
    """Milliseconds of one request, many times."""
    taken = []
    for _ in range(warm_up + requests):
        started = time.perf_counter()
        asker.ask(place, 200, headers)
        taken.append(1000 * (time.perf_counter() - started))
    return percentiles(taken[warm_up:])


@contextmanager
def opened(url: str, token: str, count: int) -> Iterator[None]:
    """So many pages that follow the server and ask for the overview whenever they hear something."""
    with ExitStack() as pages:
        for _ in range(count):
            pages.enter_context(_open_page(url, token))
        yield


@contextmanager
def _open_page(url: str, token: str) -> Iterator[None]:
    stream = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    stream.request("GET", "/live", headers={"Authorization": f"Bearer {token}"})
    answer, ended = stream.getresponse(), threading.Event()
    follower = threading.Thread(target=_follow, args=(answer, Asker(url, token), ended), daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        if (connected := stream.sock) is not None:
            connected.close()
        follower.join(10)


def _follow(answer: http.client.HTTPResponse, asker: Asker, ended: threading.Event) -> None:
    with closing(asker):
        while not ended.is_set():
            try:
                if answer.readline().startswith(b"event: news"):
                    asker.ask("/", 200, _HTML)
            except (OSError, ValueError, http.client.HTTPException):
                return


@contextmanager
def submitted_meanwhile(services: Services) -> Iterator[None]:
    """A job a second, so that open pages hear something."""
    ended = threading.Event()

    def submit() -> None:
        while not ended.wait(1.0):
            with services.database.write() as session:
                add_jobs(session, 1, queued=True)

    submitter = threading.Thread(target=submit)
    submitter.start()
    try:
        yield
    finally:
        ended.set()
        submitter.join()


def _missed(figures: dict[str, Any]) -> list[str]:
    """What is above what is wanted, in one place."""
    missed = [what for what, taken in figures["pages"].items() if taken["p95"] > WANTED_MS]
    if figures["first_page_bytes"] > WANTED_BYTES:
        missed.append("weight of the first page")
    if _share(figures) > WANTED_SHARE:
        missed.append("requests beside open pages")
    return missed


def _share(figures: dict[str, Any]) -> float:
    """By how much the 99th percentile of another request is higher while pages are open."""
    return float(figures["beside_open_pages"]["p99"] / figures["alone"]["p99"] - 1)


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, places = document["sizes"], document["places"]
    lines = [
        "# What the pages cost", "",
        f"{sizes['jobs']:,} jobs, {sizes['tasks']:,} tasks and {sizes['versions']:,} versions; {sizes['requests']:,} "
        "requests of each page, one after another, to `onboard serve` with one core for itself. Milliseconds, as the "
        f"client sees them. Wanted: a 95th percentile of at most {WANTED_MS:.0f} ms.", "",
        f"{made_on(document)}. [Numbers](../../bench/results/pages.json).", "",
        *table(["page", *(column for name in places for column in (f"{PLACES[name]} p50", "p95", "p99"))]),
    ]  # fmt: skip
    for what in next(iter(places.values()))["pages"]:
        taken = [places[name]["pages"][what] for name in places]
        cells = [f"{one[share]:.1f}" + " **missed**" * (share == "p95" and one[share] > WANTED_MS)
                 for one in taken for share in ("p50", "p95", "p99")]  # fmt: skip
        lines.append(table_row(what, *cells))
    for name, figures in places.items():
        alone, beside = figures["alone"]["p99"], figures["beside_open_pages"]["p99"]
        lines += ["", (
            f"{PLACES[name]}: the first page has {figures['first_page_bytes'] / 1000:,.0f} kB with all that it loads "
            f"(wanted: at most {WANTED_BYTES // 1000}). With {sizes['open_pages']} pages open, while a job a second is "
            f"submitted, the 99th percentile of the latest embedding goes from {alone:.2f} to {beside:.2f} ms "
            f"(wanted: at most {100 * WANTED_SHARE:.0f}% more)."
        )]  # fmt: skip
        if missed := _missed(figures):
            lines += ["", f"Missed on {PLACES[name]}: {', '.join(missed)}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
