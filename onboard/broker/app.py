"""The Celery app that sends doorbell messages, through `filesystem://` in the home folder or Redis."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import kombu.transport
from celery import Celery

from onboard.broker.url import FILES, require_broker_url
from onboard.domain.private import private_folder
from onboard.registry.schema import make_home
from onboard.settings import Settings

BROKER_SECONDS: Final = 3  # for connecting, reading and writing; submit must not hang when the broker is down

kombu.transport.TRANSPORT_ALIASES["filesystem"] = "onboard.broker.filesystem:Transport"
kombu.transport.TRANSPORT_ALIASES["redis"] = "onboard.broker.redis_transport:Transport"
kombu.transport.TRANSPORT_ALIASES["rediss"] = "onboard.broker.redis_transport:Transport"


def broker_queue(queue: str) -> str:
    """Return the name of a queue in the broker, which may be shared with other applications."""
    return f"onboard.{queue}"


def make_app(settings: Settings, *, is_current: bool = False) -> Celery:
    """Return a Celery app that only sends, with short timeouts. `workers/app.py` configures it for workers.

    Args:
        is_current: whether it becomes Celery's current app of this process.

    Raises:
        InputError: the broker's URL is invalid.
    """
    app = Celery("onboard", broker=_broker_url(settings), set_as_current=is_current)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        result_backend=None,
        broker_transport_options=_transport_options(settings),
        broker_connection_timeout=BROKER_SECONDS,
    )
    return app


def _broker_url(settings: Settings) -> str:
    url = settings.resolved_broker_url
    require_broker_url(url)
    if url.startswith(FILES):
        return "filesystem://localhost"  # kombu warns about a missing host
    if url.startswith("rediss://") and "ssl_cert_reqs=" not in url:
        # kombu does not verify certificates by default
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"
    return url


def _transport_options(settings: Settings) -> dict[str, Any]:
    if settings.resolved_broker_url.startswith("filesystem"):
        folder = str(_broker_folder(settings))
        return {"data_folder_in": folder, "data_folder_out": folder, "polling_interval": 0.2}
    hasty = {"max_retries": 0, "interval_start": 0, "retry_on_timeout": False}
    return {"socket_connect_timeout": BROKER_SECONDS, "socket_timeout": BROKER_SECONDS, **hasty}


def _broker_folder(settings: Settings) -> Path:
    return private_folder(make_home(settings.resolved_home) / "broker")
