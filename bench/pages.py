"""The cost of the pages on a real server with one core and many jobs, tasks and versions, also for other requests.

    python -m bench.pages --output bench/results/pages.json --table bench/results/pages.md

Milliseconds of whole requests, one after another over one kept connection, after a warm-up; the server has one core
for itself. Open pages follow the server's events while jobs are submitted; another request is measured with and without
them, in turns. A browser says when the first page is painted, when a change is on a page, and what axe finds.
Exits with 1 when a page is slower or heavier than the target, or open pages slow others down more than that.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.api import percentiles
from bench.harness.command import asked_sizes, command_line
from bench.harness.deployed import PLACES, analyse, deployed, measurable
from bench.harness.many_jobs import add_jobs, add_tasks
from bench.harness.open_pages import open_pages
from bench.harness.page import made_on, table, table_row
from bench.harness.report import made_by, report
from bench.harness.server import Asker, Server, core_seconds, serving
from onboard.domain.access import ALL_SCOPES
from onboard.domain.job import JobSpec
from onboard.hypernetworks.register import register_base
from onboard.operations.access import create_token
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

WANTED_MS: Final = 100.0  # of server time, 95th percentile, for each page
WANTED_BYTES: Final = 150_000  # of the first page with all that it loads
WANTED_SHARE: Final = 0.05  # by which open pages may raise the 99th percentile of another request
WANTED_PAINT_MS: Final = 1000.0
WANTED_SHOWN_SECONDS: Final = 2.0
_CHANGE_SECONDS: Final = 2.0  # between jobs that are submitted meanwhile
_STANDING_SECONDS: Final = 10.0  # for which open pages are left alone
_HTML: Final = {"Accept": "text/html"}
_OTHER: Final = "/v1/tasks/sst2/embeddings/latest"
_FILES: Final = ("onboard.css", "htmx.js", "pages.js")
_NOTHING: Final = "/healthz"


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        jobs: that ended, a hundredth of them failed.
        tasks: with `versions` of all of them together.
        requests: of each page.
        warm_up: requests of each page that do not count.
        open_pages: that follow meanwhile.
        rounds: in which another request is measured without and with them.
        looks: loads and changes that a browser is asked about; 0 asks none.
    """

    jobs: int = 10_000
    tasks: int = 2_000
    versions: int = 200_000
    requests: int = 200
    warm_up: int = 5
    open_pages: int = 50
    rounds: int = 16
    looks: int = 10


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    asked, sizes = asked_sizes(command_line(__doc__), Sizes(), arguments)
    places = {name: measured_at(name, sizes) for name in measurable()}
    limits = {
        "page_ms": WANTED_MS, "first_page_bytes": WANTED_BYTES, "share_of_others": WANTED_SHARE,
        "paint_ms": WANTED_PAINT_MS, "shown_seconds": WANTED_SHOWN_SECONDS,
    }  # fmt: skip
    document = {
        **made_by("python -m bench.pages"), "sizes": asdict(sizes), "wanted_at_most": limits, "places": places,
        "load": [round(load, 1) for load in os.getloadavg()],
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
            nothing = timed(asker, _NOTHING, sizes.requests, sizes.warm_up)
            pages = {what: of_page(asker, place, sizes, server.process.pid) for what, place in kinds.items()}
            first_bytes = sum(asker.size(place, _HTML) for place in ("/", *(f"/static/{name}" for name in _FILES)))
            beside = beside_open_pages(services, server, token, sizes)
            seen = looked_at(services, server.url, token, job, sizes.looks) if sizes.looks else None
    return {"nothing": nothing, "pages": pages, "first_page_bytes": first_bytes, **beside, "browser": seen}


def of_page(asker: Asker, place: str, sizes: Sizes, pid: int) -> dict[str, float]:
    """Milliseconds of a page as the client sees them, and `computed`: how long the server computed on average."""
    asker.ask(place, 200, _HTML)
    before = core_seconds(pid)
    taken = milliseconds(asker, place, sizes.requests, sizes.warm_up, _HTML)
    computed = 1000 * (core_seconds(pid) - before) / (sizes.requests + sizes.warm_up)
    return {**percentiles(taken), "computed": round(computed, 2)}


def beside_open_pages(services: Services, server: Server, token: str, sizes: Sizes) -> dict[str, Any]:
    """Milliseconds of another request without and with open pages, in turns, and the share by which they raise it.

    `cores`: how much of a core the server computes for the open pages alone, while jobs are submitted.
    """
    url, pid = server.url, server.process.pid
    taken: dict[str, list[list[float]]] = {"alone": [], "beside_open_pages": []}
    with submitted_meanwhile(services), closing(Asker(url, token)) as asker:
        for _ in range(sizes.rounds):
            for arm, count in (("alone", 0), ("beside_open_pages", sizes.open_pages)):
                with open_pages(url, token, count) if count else nullcontext():
                    taken[arm].append(milliseconds(asker, _OTHER, 2 * sizes.requests, sizes.warm_up))
        with open_pages(url, token, sizes.open_pages):
            time.sleep(_CHANGE_SECONDS)
            before = core_seconds(pid)
            time.sleep(_STANDING_SECONDS)
            cores = (core_seconds(pid) - before) / _STANDING_SECONDS
    figures = {arm: percentiles([one for part in parts for one in part]) for arm, parts in taken.items()}
    shares = [percentiles(with_pages)["p99"] / percentiles(without)["p99"] - 1
              for without, with_pages in zip(*taken.values(), strict=True)]  # fmt: skip
    return {**figures, "share_of_rounds": [round(share, 4) for share in sorted(shares)], "cores": round(cores, 4)}


def looked_at(services: Services, url: str, token: str, job: str, times: int) -> dict[str, Any] | None:
    """The measurements of a browser; None where there is none."""
    from bench.harness import browser as browsers
    from bench.harness.looking import accessible, painted_ms, shown_seconds

    if program := browsers.absent():
        print(f"skipped: {program} is not installed")
        return None

    def submit(number: int) -> str:
        submit_job(services, name := f"seen-{number}", priority=number + 1)
        return name

    submit_job(services, "noted")
    with services.database.write() as session:
        running = ClaimRepository(session).claim("bench", ["default"])
    assert running is not None

    def note(number: int) -> str:
        with services.database.write() as session:
            ClaimRepository(session).append(running.id, running.attempt, "note", text := f"step {number} of many")
        return text

    with browsers.chromium() as opened:
        painted = painted_ms(opened, url, token, times)
        on_overview = shown_seconds(opened, url, token, "/", submit, times)
        on_job = shown_seconds(opened, url, token, f"/jobs/{running.id}", note, times)
        wrong = accessible(opened, url, token, {**pages_of(job), **_OTHERS})
    return {
        "painted_ms": sorted(round(one, 1) for one in painted),
        "shown_seconds": {"overview": _sorted(on_overview), "one job": _sorted(on_job)},
        "faults_of_accessibility": wrong,
        "pages_looked_at": 2 * len({**pages_of(job), **_OTHERS}),
    }


def _sorted(seconds: list[float]) -> list[float]:
    return sorted(round(one, 3) for one in seconds)


def pages_of(job: str) -> dict[str, str]:
    """The pages that are requested, by name."""
    return {
        "overview": "/", "jobs": "/jobs", "failed jobs": "/jobs?state=failed", "one job": f"/jobs/{job}",
        "tasks": "/tasks", "tasks by name": "/tasks?name=99", "one task": "/tasks/sst2",
        "shipped tasks": "/tasks?shipped=yes", "hypernetworks": "/hypernetworks", "submit": "/submit",
        "jobs, longest run": "/jobs?sort=longest-run", "jobs, longest wait": "/jobs?sort=longest-wait",
        "jobs by task": "/jobs?sort=task", "map": "/map", "tokens": "/tokens", "audit": "/audit",
        "webhooks": "/webhooks",
    }  # fmt: skip


_OTHERS: Final = {"one hypernetwork": "/hypernetworks/1", "an error": "/nothing"}


def fill(services: Services, sizes: Sizes) -> tuple[str, str]:
    """Jobs, tasks and versions; returns a token, and the id of a job."""
    from onboard.bases import find_base

    register_base(services, find_base(services.settings.base))
    with services.database.write() as session:
        job = add_jobs(session, sizes.jobs)
        add_tasks(session, sizes.tasks, sizes.versions)
    analyse(services.database)
    return create_token(services.database, "bench", list(ALL_SCOPES))[1], job


def timed(
    asker: Asker, place: str, requests: int, warm_up: int, headers: dict[str, str] | None = None
) -> dict[str, float]:
    """Milliseconds of one request, many times, as percentiles."""
    return percentiles(milliseconds(asker, place, requests, warm_up, headers))


def milliseconds(
    asker: Asker, place: str, requests: int, warm_up: int, headers: dict[str, str] | None = None
) -> list[float]:
    """Milliseconds of one request, many times; those of the warm-up do not count."""
    taken = []
    for _ in range(warm_up + requests):
        started = time.perf_counter()
        asker.ask(place, 200, headers)
        taken.append(1000 * (time.perf_counter() - started))
    return taken[warm_up:]


def submit_job(services: Services, task: str, priority: int = 0) -> None:
    """A job that waits, as a submitter leaves it."""
    with services.database.write() as session:
        JobRepository(session).add(JobSpec(task=task, dataset="sha256:0"), priority=priority)


@contextmanager
def submitted_meanwhile(services: Services) -> Iterator[None]:
    """A job every other second, so that open pages hear something."""
    ended = threading.Event()

    def submit() -> None:
        while not ended.wait(_CHANGE_SECONDS):
            submit_job(services, "meanwhile")

    submitter = threading.Thread(target=submit)
    submitter.start()
    try:
        yield
    finally:
        ended.set()
        submitter.join()


def _missed(figures: dict[str, Any]) -> list[str]:
    """The missed targets of one place."""
    missed = [what for what, taken in figures["pages"].items() if taken["p95"] > WANTED_MS]
    if figures["first_page_bytes"] > WANTED_BYTES:
        missed.append("weight of the first page")
    if _share(figures) > WANTED_SHARE:
        missed.append("requests while pages are open")
    if seen := figures["browser"]:
        missed += ["first paint"] * (_middle(seen["painted_ms"]) > WANTED_PAINT_MS)
        missed += [f"a change on {what}" for what, taken in seen["shown_seconds"].items()
                   if _middle(taken) > WANTED_SHOWN_SECONDS]  # fmt: skip
        missed += [f"accessibility: {what}" for what in seen["faults_of_accessibility"]]
    return missed


def _share(figures: dict[str, Any]) -> float:
    """By how much the 99th percentile of another request is higher while pages are open, over all rounds."""
    return float(figures["beside_open_pages"]["p99"] / figures["alone"]["p99"] - 1)


def _middle(numbers: list[float]) -> float:
    return float(statistics.median(numbers))


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, places = document["sizes"], document["places"]
    lines = [
        "# Cost of the pages", "",
        f"{sizes['jobs']:,} jobs, {sizes['tasks']:,} tasks and {sizes['versions']:,} versions; {sizes['requests']:,} "
        "requests of each page, one after another, to `onboard serve` on one core. Milliseconds, as the client sees "
        f"them (wanted: a 95th percentile of at most {WANTED_MS:.0f}), and how long the server "
        "computed for one, on average: what else runs on the machine changes that little.", "",
        f"{made_on(document)}; {document['load'][1]:.1f} processes computed on the machine at a time when it ended. "
        "[Numbers](pages.json).", "",
        *table(["page", *(column for name in places for column in (f"{PLACES[name]} p50", "p95", "computed"))]),
    ]  # fmt: skip
    for what in next(iter(places.values()))["pages"]:
        taken = [places[name]["pages"][what] for name in places]
        cells = [f"{one[share]:.1f}" + " **missed**" * (share == "p95" and one[share] > WANTED_MS)
                 for one in taken for share in ("p50", "p95", "computed")]  # fmt: skip
        lines.append(table_row(what, *cells))
    for name, figures in places.items():
        alone, beside = figures["alone"]["p99"], figures["beside_open_pages"]["p99"]
        shares = figures["share_of_rounds"]
        lines += ["", (
            f"{PLACES[name]}: the first page has {figures['first_page_bytes'] / 1000:,.0f} kB with all that it loads "
            f"(wanted: at most {WANTED_BYTES // 1000}). With {sizes['open_pages']} overviews open, while a job is "
            f"submitted every {_CHANGE_SECONDS:.0f} seconds, the 99th percentile of the latest embedding changes by "
            f"{100 * _share(figures):+.1f}% over {len(shares)} rounds in turn (from {alone:.2f} to {beside:.2f} ms; "
            f"single rounds {100 * shares[0]:+.0f}% to {100 * shares[-1]:+.0f}%; wanted: at most "
            f"{100 * WANTED_SHARE:.0f}% more). "
            f"The server computes {100 * figures['cores']:.1f}% of a core for them. "
            f"A request that needs nothing took {figures['nothing']['p95']:.1f} ms at the 95th percentile."
        )]  # fmt: skip
        if seen := figures["browser"]:
            lines += ["", _seen(seen)]
        if missed := _missed(figures):
            lines += ["", f"Missed on {PLACES[name]}: {', '.join(missed)}."]
    return "\n".join(lines) + "\n"


def _seen(seen: dict[str, Any]) -> str:
    shown = "; ".join(
        f"{what} {_middle(taken):.1f} s, at most {taken[-1]:.1f}" for what, taken in seen["shown_seconds"].items()
    )
    painted, faults = seen["painted_ms"], len(seen["faults_of_accessibility"])
    return (
        f"In Chromium: the overview is painted after {_middle(painted):.0f} ms, at most {painted[-1]:.0f}, with none "
        f"of it stored (wanted: {WANTED_PAINT_MS:.0f}). From a change in the database to its being on an open "
        f"page: {shown} (wanted: {WANTED_SHOWN_SECONDS:.0f} s). axe finds faults (WCAG AA) on {faults} "
        f"of {seen['pages_looked_at']} pages, light and dark."
    )


if __name__ == "__main__":
    sys.exit(main())
