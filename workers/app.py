"""The Celery app: `filesystem://` in the home folder, or Redis. Nothing but bells goes through it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

import kombu.transport
from celery import Celery

from onboard.domain.private import private_folder
from onboard.registry.schema import make_home
from onboard.settings import Settings
from workers.broker_url import FILES, require_broker_url
from workers.plan import WorkerPlan

_BROKER_SECONDS: Final = 3  # connecting, reading and writing: a submitter must not hang on a broker that is away

kombu.transport.TRANSPORT_ALIASES["filesystem"] = "workers.filesystem:Transport"
kombu.transport.TRANSPORT_ALIASES["redis"] = "workers.redis_broker:Transport"
kombu.transport.TRANSPORT_ALIASES["rediss"] = "workers.redis_broker:Transport"


def broker_queue(queue: str) -> str:
    """The name of a queue in the broker, which may be shared with others."""
    return f"onboard.{queue}"


def make_app(settings: Settings, plan: WorkerPlan | None = None) -> Celery:
    """A Celery app for a submitter (no plan: it only rings) or for the worker of `plan`."""
    app = Celery("onboard", broker=_broker_url(settings), set_as_current=plan is not None)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        result_backend=None,
        broker_transport_options=_transport_options(settings, patient=plan is not None),
        broker_connection_timeout=_BROKER_SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # a worker waits for its broker as long as it takes
        include=["workers.tasks"],
    )
    if plan is not None:
        app.conf.update(
            onboard_plan=plan,
            worker_concurrency=1,  # one process per device
            worker_pool="workers.pool:TaskPool",
            worker_pool_start_method="spawn",  # CUDA cannot fork
            worker_prefetch_multiplier=1,
            broker_channel_error_retry=True,  # a Redis that became a replica refuses to pop: connect anew, do not end
            worker_disable_prefetch=settings.resolved_broker_url.startswith("redis"),
            worker_proc_alive_timeout=600,  # seconds: the child loads torch and the base before it says that it is up
            worker_lost_wait=1,  # seconds: its row already says whose job it was
            worker_enable_remote_control=False,
            worker_send_task_events=False,
            worker_redirect_stdouts=False,
            worker_cancel_long_running_tasks_on_connection_loss=False,
        )
    return app


def _broker_url(settings: Settings) -> str:
    url = settings.resolved_broker_url
    require_broker_url(url)
    if url.startswith(FILES):
        return "filesystem://localhost"  # kombu warns about a missing host
    if url.startswith("rediss://") and "ssl_cert_reqs=" not in url:
        return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"  # kombu's own default trusts everybody
    return url


def _transport_options(settings: Settings, *, patient: bool) -> dict[str, Any]:
    if settings.resolved_broker_url.startswith("filesystem"):
        folder = _broker_folder(settings)
        return {"data_folder_in": str(folder), "data_folder_out": str(folder), "polling_interval": 0.2}
    options: dict[str, Any] = {"socket_connect_timeout": _BROKER_SECONDS}
    if patient:
        keepalive = {"socket_keepalive": True, "socket_keepalive_options": _keepalive_options()}
        return {**options, **keepalive, "health_check_interval": 30}
    hasty = {"max_retries": 0, "interval_start": 0, "retry_on_timeout": False}
    return {**options, "socket_timeout": _BROKER_SECONDS, **hasty}


def _keepalive_options() -> dict[int, int]:
    """A Redis that vanished without a word is noticed within half a minute, as the database is; Linux's own two hours
    would leave the worker deaf. What a system has no option for is left out.
    """
    keepalive = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}  # s, s, -, ms
    return {getattr(socket, name): value for name, value in keepalive.items() if hasattr(socket, name)}


def _broker_folder(settings: Settings) -> Path:
    return private_folder(make_home(settings.resolved_home) / "broker")
