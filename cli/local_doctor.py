"""Checks of `onboard doctor` for the service of this environment."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from sqlalchemy import make_url

from cli.standing import require_served, workers_standing
from onboard.bases import find_base, is_shipped, require_as_installed
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.counting import counted
from onboard.domain.database_url import NO_PREPARED_STATEMENTS
from onboard.domain.moment import rough_text
from onboard.domain.release import release_number
from onboard.errors import DamagedError, OnboardError, OtherBaseError, UnavailableError
from onboard.hypernetworks.prior.lessons import unusable_lessons
from onboard.hypernetworks.prior.line import check_priors
from onboard.jobs import status
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.operations.access import list_tokens
from onboard.operations.health import base_at, claimable, database_clock, live_workers, webhook_standing
from onboard.operations.processes import lives
from onboard.registry.schema import is_current, make_home, open_database
from onboard.registry.services import open_services

if TYPE_CHECKING:
    from onboard.bases import Base
    from onboard.settings import Settings

_NAMED_TASKS: Final = 5  # of a base, as many as fit into a cell of the table
_SOON_SECONDS: Final = 14 * 86_400.0  # before the end of a token, to warn


def _home(settings: Settings) -> str:
    elsewhere = settings.database_url and settings.broker_url and settings.artifact_url
    return "not used" if elsewhere else str(make_home(settings.resolved_home))


def _database(settings: Settings) -> str:
    with open_database(settings) as database:
        pooled, current = database.has_pooler(), is_current(database)
    url = make_url(settings.resolved_database_url).difference_update_query([NO_PREPARED_STATEMENTS])
    schema = "schema as expected" if current else "schema of a later version, on which this one works"
    shown = f"{url.render_as_string(hide_password=True)}, {schema}"
    if not pooled:
        return shown
    if settings.database_prepared_statements:
        return f"{shown}; behind a pooler: if it pools transactions, set ONBOARD_DATABASE_PREPARED_STATEMENTS=false"
    return f"{shown}; behind a pooler, without prepared statements"


def _broker(settings: Settings) -> str:
    CeleryDoorbell(settings).ring(DEFAULT_QUEUE)  # a message without work is harmless
    return settings.resolved_broker_url.rpartition("@")[2] + " accepts messages"


def _artifacts(settings: Settings) -> str:
    with closing(open_services(settings)) as services:
        digest = services.store(b"onboard doctor", "probe")
        services.artifacts.get(digest)
    return f"{settings.resolved_artifact_url} can be written and read"


def _base(settings: Settings) -> str:
    from onboard.bases.load import fresh_engine

    base = find_base(settings.base)
    _ = base.embeddings, base.trained_rows, base.fingerprints  # each raises where its file is broken
    fresh_engine(base)
    require_as_installed(base)
    _require_registered(settings, base)
    return f"{base.name} {base.digest[:19]}… loads, with {_named(base)}"


def _require_registered(settings: Settings, base: Base) -> None:
    """Raise OtherBaseError where its files are not those that were registered from this very folder.

    A shipped base may change with the package.
    """
    if is_shipped(base):
        return
    try:
        with open_database(settings) as database:
            registered = base_at(database, str(base.folder))
    except OnboardError:  # another check reports problems of the database
        return
    if registered is not None and registered.digest != base.digest:
        raise OtherBaseError(
            "base-files-of-other-base",
            base=base.name,
            folder=base.folder,
            base_digest=base.digest,
            registered_digest=registered.digest,
        )


def _named(base: Base) -> str:
    """How many tasks it has, and the first few by name."""
    names = [source.name for source in base.sources]
    more = ", …" if len(names) > _NAMED_TASKS else ""
    return f"{counted(len(names), 'task')}" + (f": {', '.join(names[:_NAMED_TASKS])}{more}" if names else "")


def _prior(settings: Settings) -> str:
    base = find_base(settings.base)
    with closing(open_services(settings)) as services:
        heads, left_out = check_priors(services, base), unusable_lessons(services, base)
    if left_out:
        raise DamagedError("lessons-unusable", base=base.name, left_out=left_out)
    shown = [f"{head['form']} v{head['version']} of {head['lessons']} lessons" for head in heads]
    other = [str(head["form"]) for head in heads if not head["same"]]
    note = f"; the numbers differ from those on the machine that fitted it: {', '.join(other)}" if other else ""
    first = (
        "the first job or `onboard prior refit` fits one" if base.lessons else "the first published task teaches one"
    )
    return (", ".join(shown) or f"none yet; {first}") + note


def _device(settings: Settings) -> str:
    import torch

    from onboard.bases.load import resolve_device

    device = resolve_device(settings.device)
    if device.type == "cuda":
        return f"{device}: {torch.cuda.get_device_name(device)}"
    return f"cpu, {torch.get_num_threads()} threads, torch {torch.__version__}"


def _workers(settings: Settings) -> str:
    with open_database(settings) as database:
        seen = status.workers(database).to_json()
    standing = workers_standing(seen, release_number(), _dead(settings))
    if standing:
        return standing
    if settings.embedded:
        return "none running; submit starts one automatically"
    raise UnavailableError("no-worker-lives")


def _dead(settings: Settings) -> set[str]:
    """Workers whose process is gone although their heartbeat is fresh; known at once on one machine."""
    if not settings.embedded:
        return set()
    with open_database(settings) as database:
        return {worker.name for worker in live_workers(database) if not lives(worker)}


def _queues(settings: Settings) -> str:
    with open_database(settings) as database:
        seen = status.queues(database).to_json()
        waiting = claimable(database)
        alive = any(worker.name not in _dead(settings) for worker in live_workers(database))
    require_served(seen, near=True, embedded=settings.embedded, dead=settings.embedded and not alive)
    return ", ".join(f"{count} to be claimed in {queue}" for queue, count in waiting.items()) or "no job waits"


def _webhooks(settings: Settings) -> str:
    with open_database(settings) as database:
        standing = webhook_standing(database)
    wrong = [
        f"{state.endpoint}: {state.failing} failing, {state.given_up} given up, {state.error}"
        for state in standing
        if state.failing or state.given_up
    ]
    if wrong:
        raise UnavailableError("webhooks-failing", webhooks="; ".join(wrong))
    waiting = sum(state.waiting for state in standing)
    receivers = (
        ", ".join(endpoint.name for endpoint in settings.webhooks.endpoints) or "no receivers in this environment"
    )
    return f"{receivers}; {waiting} waiting" if waiting else receivers


def _tokens(settings: Settings) -> str:
    with open_database(settings) as database:
        tokens, now = list_tokens(database), database_clock(database)
    if not tokens:
        return "none; `onboard serve` accepts only this machine"
    soon = sorted(
        (token.expires_at - now, token.name)
        for token in tokens
        if token.expires_at is not None and token.expires_at - now < _SOON_SECONDS
    )
    ends = "".join(f"; {name} ends in {rough_text(max(0.0, left))}" for left, name in soon)
    return f"{len(tokens)} {'works' if len(tokens) == 1 else 'work'}{ends}"


CHECKS: Final = {
    "home": _home, "database": _database, "broker": _broker, "artifacts": _artifacts, "base": _base, "prior": _prior,
    "device": _device, "workers": _workers, "queues": _queues, "webhooks": _webhooks, "tokens": _tokens,
}  # fmt: skip
