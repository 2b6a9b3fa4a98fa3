"""The Celery app of a worker: one process for one device, which waits for its broker as long as it takes."""

from __future__ import annotations

import socket
from typing import Any

from celery import Celery

from onboard.broker.app import BROKER_SECONDS, make_app
from workers.plan import WorkerPlan


def make_worker_app(plan: WorkerPlan) -> Celery:
    """The app of the worker of `plan`. Raises InputError: the broker's URL names none."""
    app = make_app(plan.settings, is_current=True)
    with_redis = plan.settings.resolved_broker_url.startswith("redis")
    app.conf.update(
        onboard_plan=plan,
        include=["workers.tasks"],
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # a worker waits for its broker as long as it takes
        broker_channel_error_retry=True,  # a Redis that became a replica refuses to pop: reconnect, do not end
        worker_concurrency=1,  # one process per device
        worker_pool="workers.pool:TaskPool",
        worker_pool_start_method="spawn",  # CUDA cannot fork
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=with_redis,
        worker_proc_alive_timeout=600,  # seconds: the child loads torch and the base before it says that it is up
        worker_lost_wait=1,  # seconds: its row already says whose job it was
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )
    if with_redis:
        app.conf.broker_transport_options = _patient_options()
    return app


def _patient_options() -> dict[str, Any]:
    keepalive = {"socket_keepalive": True, "socket_keepalive_options": _keepalive_options()}
    return {"socket_connect_timeout": BROKER_SECONDS, **keepalive, "health_check_interval": 30}


def _keepalive_options() -> dict[int, int]:
    """A Redis that vanished without a word is noticed within half a minute, as the database is; Linux's own two hours
    would leave the worker unresponsive. Options that a system lacks are left out.
    """
    keepalive = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}  # s, s, -, ms
    return {getattr(socket, name): value for name, value in keepalive.items() if hasattr(socket, name)}
