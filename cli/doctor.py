"""`onboard doctor`: what is reachable, which device, which base, and the command that mends what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import typer

from cli.output import AsJson, emit, table
from onboard.errors import OnboardError

if TYPE_CHECKING:
    from rich.table import Table

    from onboard.domain.worker import WorkerRecord
    from onboard.settings import Settings

Check = Callable[["Settings"], str]
"""Says what was found, or raises what is wrong."""


_SOON_SECONDS: Final = 14 * 86_400.0  # in which a token's end is told


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        what: its name.
        ok: whether it is as it should be.
        found: what was found.
        remedy: the command that mends it, empty when nothing is wrong.
        exit_code: what the command exits with when this is wrong.
    """

    what: str
    ok: bool
    found: str
    remedy: str = ""
    exit_code: int = 0


def doctor(as_json: AsJson = False) -> None:
    """Look at everything that a job needs; exit 0 when all is well."""
    from onboard.settings import Settings

    settings = Settings()
    checks: Mapping[str, Check] = _CHECKS
    if settings.api_url:  # then of what a remote service shows
        from cli import remote_doctor

        checks = remote_doctor.CHECKS
    findings = [_looked_at(what, check, settings) for what, check in checks.items()]
    document = {"ok": all(finding.ok for finding in findings), "checks": [asdict(finding) for finding in findings]}
    emit(document, as_json, lambda: _table(findings))
    raise typer.Exit(next((finding.exit_code for finding in findings if not finding.ok), 0))


def _looked_at(what: str, check: Check, settings: Settings) -> Finding:
    try:
        return Finding(what, True, check(settings))
    except OnboardError as error:
        return Finding(what, False, error.message, error.remedy, error.exit_code)


def _home(settings: Settings) -> str:
    from onboard.registry.schema import make_home

    elsewhere = settings.database_url and settings.broker_url and settings.artifact_url
    return "not used" if elsewhere else str(make_home(settings.resolved_home))


def _database(settings: Settings) -> str:
    from sqlalchemy import make_url

    from onboard.registry.schema import open_database

    open_database(settings).dispose()
    shown = make_url(settings.resolved_database_url).render_as_string(hide_password=True)
    return f"{shown}, schema as it should be"


def _broker(settings: Settings) -> str:
    from onboard.jobs.doorbell import DEFAULT_QUEUE
    from workers.doorbell import CeleryDoorbell

    CeleryDoorbell(settings).ring(DEFAULT_QUEUE)  # a bell without work is harmless
    return settings.resolved_broker_url.rpartition("@")[2] + " takes bells"


def _artifacts(settings: Settings) -> str:
    from onboard.services import open_services

    with closing(open_services(settings)) as services:
        digest = services.store(b"onboard doctor", "probe")
        services.artifacts.get(digest)
    return f"{settings.resolved_artifact_url} can be written and read"


def _base(settings: Settings) -> str:
    from onboard.bases import find_base

    base = find_base(settings.base)
    return f"{base.name} {base.digest[:19]}… with {', '.join(source.name for source in base.sources)}"


def _device(settings: Settings) -> str:
    import torch

    from onboard.bases.load import resolve_device

    device = resolve_device(settings.device)
    if device.type == "cuda":
        return f"{device}: {torch.cuda.get_device_name(device)}"
    return f"cpu, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _workers(settings: Settings) -> str:
    from onboard.errors import UnavailableError

    live = _live_workers(settings)
    _require_as_new(live)
    if live:
        return ", ".join(f"{worker.name} on {worker.device}" for worker in live)
    if settings.embedded:
        return "none now; submit starts one by itself"
    raise UnavailableError("No worker lives; jobs will wait.", "onboard worker")


def _live_workers(settings: Settings) -> list[WorkerRecord]:
    from onboard.operations.health import live_workers
    from onboard.registry.schema import open_database

    with open_database(settings) as database:
        return live_workers(database)


def _require_as_new(workers: list[WorkerRecord]) -> None:
    """A worker leaves jobs that were submitted by newer code alone."""
    from onboard import __version__
    from onboard.domain.release import release_number, release_of
    from onboard.errors import ConflictError

    behind = [worker for worker in workers if release_of(worker.facts) < release_number()]
    older = [f"{worker.name} has {worker.facts['onboard']}" for worker in behind]
    if older:
        raise ConflictError(
            f"Workers are older than onboard {__version__} here, and leave its jobs alone: {', '.join(older)}.",
            "Install the same version there and start them again: pip install -U onboard",
        )


def _queues(settings: Settings) -> str:
    from onboard.errors import UnavailableError
    from onboard.operations.health import claimable
    from onboard.registry.schema import open_database

    served = {queue for worker in _live_workers(settings) for queue in worker.queues}
    with open_database(settings) as database:
        waiting = claimable(database)
    unserved = sorted(waiting.keys() - served)
    if unserved and not settings.embedded:
        raise UnavailableError(
            f"Jobs wait in {', '.join(unserved)}, which no live worker serves.", f"onboard worker --queue {unserved[0]}"
        )
    return ", ".join(f"{count} to be claimed in {queue}" for queue, count in waiting.items()) or "no job waits"


def _webhooks(settings: Settings) -> str:
    from onboard.errors import UnavailableError
    from onboard.operations.health import webhook_standing
    from onboard.registry.schema import open_database

    with open_database(settings) as database:
        standing = webhook_standing(database)
    wrong = [
        f"{state.endpoint}: {state.failing} failing, {state.given_up} given up, {state.error}"
        for state in standing
        if state.failing or state.given_up
    ]
    if wrong:
        raise UnavailableError("; ".join(wrong), "Mend the receivers: docs/webhooks.md#what-can-go-wrong")
    waiting = sum(state.waiting for state in standing)
    receivers = (
        ", ".join(endpoint.name for endpoint in settings.webhooks.endpoints) or "nobody is told by this environment"
    )
    return f"{receivers}; {waiting} waiting" if waiting else receivers


def _tokens(settings: Settings) -> str:
    from onboard.domain.moment import rough_text
    from onboard.operations.access import list_tokens
    from onboard.operations.health import database_clock
    from onboard.registry.schema import open_database

    with open_database(settings) as database:
        tokens, now = list_tokens(database), database_clock(database)
    if not tokens:
        return "none; `onboard serve` answers this machine alone"
    soon = sorted(
        (token.expires_at - now, token.name)
        for token in tokens
        if token.expires_at is not None and token.expires_at - now < _SOON_SECONDS
    )
    ends = "".join(f"; {name} ends in {rough_text(max(0.0, left))}" for left, name in soon)
    return f"{len(tokens)} {'works' if len(tokens) == 1 else 'work'}{ends}"


_CHECKS: Final[dict[str, Check]] = {
    "home": _home, "database": _database, "broker": _broker, "artifacts": _artifacts, "base": _base,
    "device": _device, "workers": _workers, "queues": _queues, "webhooks": _webhooks, "tokens": _tokens,
}  # fmt: skip


def _table(findings: list[Finding]) -> Table:
    from rich.text import Text

    marks = {True: Text("ok", style="green"), False: Text("wrong", style="red")}
    rows = ((marks[finding.ok], finding.what, Text(finding.found), Text(finding.remedy)) for finding in findings)
    return table(("", "check", "found", "mend it with"), rows)
