"""How fast the latest embedding is answered by a real server on one core, when its task has 10,000 versions.

    python -m bench.api --output bench/results/api.json --table bench/results/api.md

Milliseconds of whole requests, one after another over one kept connection, after a warm-up; the server has one core
for itself, client and PostgreSQL have the others. `/healthz` is what a request costs that requests nothing. Exits with
1 when a 99th percentile is above the target.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.harness.command import asked_sizes, command_line
from bench.harness.deployed import MANY, PLACES, add_versions, analyse, deployed, measurable
from bench.harness.page import made_on, table, table_row
from bench.harness.report import made_by, report
from bench.harness.server import Asker, serving
from bench.queue.__main__ import summary
from onboard.domain.access import Scope
from onboard.hypernetworks.register import register_base
from onboard.operations.access import create_token
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

WANTED: Final = {"latest": 10.0, "latest, unchanged": 5.0}  # ms, 99th percentile
_EMBEDDINGS: Final = f"/v1/tasks/{MANY}/embeddings"
Kind = tuple[str, int, Mapping[str, str]]  # path, status that is expected, headers


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        versions: of one task.
        requests: of each kind.
        warm_up: requests of each kind that do not count.
    """

    versions: int = 10_000
    requests: int = 5_000
    warm_up: int = 200


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    asked, sizes = asked_sizes(command_line(__doc__), Sizes(), arguments)
    places = {name: measured_at(name, sizes) for name in measurable()}
    document = {
        **made_by("python -m bench.api"), "sizes": asdict(sizes), "wanted_ms": WANTED, "places": places,
        "kept": not _missed(places),
    }  # fmt: skip
    return report(document, asked, page)


def measured_at(name: str, sizes: Sizes) -> dict[str, dict[str, Any]]:
    """The figures of one place, each request by its name."""
    core, *others = sorted(os.sched_getaffinity(0))
    with _on_cores({*others} or {core}), deployed(name) as (settings, folder):
        return measure(settings, folder, sizes, core)


@contextmanager
def _on_cores(cores: set[int]) -> Iterator[None]:
    """This process, and what it starts, meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def measure(settings: Settings, folder: Path, sizes: Sizes, core: int | None = None) -> dict[str, dict[str, Any]]:
    """Every figure of one place, by kind of request.

    Args:
        core: of the server.
    """
    with closing(open_services(settings)) as services:
        token = fill(services, sizes.versions)
    with serving(settings, folder / "server.log", core) as server, closing(Asker(server.url, token)) as asker:
        latest, everything = f"{_EMBEDDINGS}/latest", "/v1/embeddings"
        tag, other = asker.ask(latest), asker.ask(everything)
        kinds: dict[str, Kind] = {
            "/healthz": ("/healthz", 200, {}),
            "latest": (latest, 200, {}),
            "latest, unchanged": (latest, 304, {"If-None-Match": tag}),
            "latest.safetensors": (f"{latest}.safetensors", 200, {}),
            "v1": (f"{_EMBEDDINGS}/v1", 200, {}),
            "all tasks": (everything, 200, {}),
            "all tasks, unchanged": (everything, 304, {"If-None-Match": other}),
        }
        return _timed(asker, sizes, kinds)


def fill(services: Services, count: int) -> str:
    """Give one task so many versions, the last of them `latest`; returns a token."""
    from onboard.bases import find_base

    register_base(services, find_base(services.settings.base))
    with services.database.write() as session:
        add_versions(session, count)
        AliasRepository(session).move(MANY, "latest", count)
    analyse(services.database)
    return create_token(services.database, "bench", [Scope.READ.value])[1]


def _timed(asker: Asker, sizes: Sizes, kinds: Mapping[str, Kind]) -> dict[str, dict[str, float]]:
    """Milliseconds of each kind; the kinds take turns, so that a slow moment of the machine is one for all of them."""
    taken: dict[str, list[float]] = {what: [] for what in kinds}
    for _ in range(sizes.warm_up + sizes.requests):
        for what, (path, status, headers) in kinds.items():
            started = time.perf_counter()
            asker.ask(path, status, headers)
            taken[what].append(1000 * (time.perf_counter() - started))
    return {what: percentiles(milliseconds[sizes.warm_up :]) for what, milliseconds in taken.items()}


def percentiles(taken: list[float]) -> dict[str, float]:
    """Number, median, 95th and 99th percentile of milliseconds."""
    return {**summary(taken), "p99": round(sorted(taken)[min(len(taken) - 1, round(0.99 * len(taken)))], 3)}


def _missed(places: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The kinds of request, each with its place, of which a 99th percentile is above the target."""
    return [(what, name) for what in WANTED for name in places if places[name][what]["p99"] > WANTED[what]]


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, places = document["sizes"], document["places"]
    head = [column for name in places for column in (f"{PLACES[name]} p50", "p95", "p99")]
    lines = [
        "# Cost of requesting the latest embedding", "",
        f"One task has {sizes['versions']:,} versions. {sizes['requests']:,} requests of each kind, in turns, over one "
        "connection to `onboard serve` with one core for itself; every one is signed in by its token and looks up what "
        "the name means at that moment. Milliseconds, as the client sees them, after a warm-up. "
        "`/healthz` is what a request costs that needs no token and no database.", "",
        f"{made_on(document)}. "
        "[Numbers](api.json).", "",
        *table(["`GET …/embeddings/`", *head, "p99 wanted"]),
    ]  # fmt: skip
    missed = _missed(places)
    for what in next(iter(places.values())):
        cells = [
            f"{places[name][what][share]:.2f}{mark}"
            for name in places
            for share, mark in (("p50", ""), ("p95", ""), ("p99", " **missed**" * ((what, name) in missed)))
        ]
        lines.append(table_row(what, *cells, f"≤ {WANTED[what]:.0f}" if what in WANTED else ""))
    lines += [
        "",
        "`unchanged`: the client sent the ETag of what it has, and got 304. `all tasks`: `GET /v1/embeddings`.",
    ]
    if missed:
        where = ", ".join(f"`{what}` on {PLACES[name]}" for what, name in missed)
        lines += ["", f"Missed, the 99th percentile is above what is wanted: {where}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
