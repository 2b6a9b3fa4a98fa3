"""The checks of `onboard doctor` for a remote service at ONBOARD_API_URL."""

from __future__ import annotations

from typing import Final

from cli.standing import require_served, workers_standing
from onboard.client import Onboard
from onboard.domain.access import Scope
from onboard.domain.release import release_number
from onboard.errors import ConflictError, ScopeError
from onboard.settings import Settings


def _service(settings: Settings) -> str:
    with _asked(settings) as client:
        client.require_alive()
    return f"{settings.api_url} answers"


def _ready(settings: Settings) -> str:
    with _asked(settings) as client:
        client.require_ready()
    return "its database answers"


def _token(settings: Settings) -> str:
    with _asked(settings) as client:
        me = client.me()
    missing = [scope.value for scope in Scope if scope not in me.scopes]
    lacks = f"; it lacks {', '.join(missing)}" if missing else ""
    return f"{me.name} may {', '.join(me.scopes)}{lacks}"


def _version(settings: Settings) -> str:
    with _asked(settings) as client:
        theirs = client.me().onboard
    if release_number(theirs) != release_number():
        raise ConflictError("service-of-other-release", theirs=theirs)
    return f"onboard {theirs}, as here"


def _workers(settings: Settings) -> str:
    with _asked(settings) as client:
        try:
            standing = workers_standing(client.workers(), release_number(client.me().onboard))
        except ScopeError as error:
            return f"not looked at: {error.message}"
    return standing or "none now"


def _queues(settings: Settings) -> str:
    with _asked(settings) as client:
        try:
            queues = client.queues()
        except ScopeError as error:
            return f"not looked at: {error.message}"
    require_served(queues, near=False)
    waiting = [f"{queue['queued']} queued in {queue['queue']}" for queue in queues["queues"] if queue["queued"]]
    return ", ".join(waiting) or "no job waits"


def _asked(settings: Settings) -> Onboard:
    return Onboard(settings.api_url, settings.token.get_secret_value(), insecure=settings.api_insecure, attempts=2)


CHECKS: Final = {
    "service": _service, "ready": _ready, "token": _token, "version": _version, "workers": _workers,
    "queues": _queues,
}  # fmt: skip
