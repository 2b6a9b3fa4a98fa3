"""Carrying tasks to the head of their base, by requests of a few tasks each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onboard.client.connection import PATIENCE_SECONDS, Connection, document_of
from onboard.domain.names import require_name


def carry(
    connection: Connection, task: str | None, dry_run: bool, on_page: Callable[[dict[str, Any]], None] | None
) -> dict[str, Any]:
    """The document of `onboard tasks carry --json`; see `Onboard.carry`."""
    found: dict[str, Any] = {"dry_run": dry_run, "carried": [], "refused": []}
    path = "/v1/carry" if task is None else f"/v1/tasks/{require_name(task)}/carry"
    body: dict[str, Any] = {"dry_run": dry_run}
    while True:
        page = _sent(connection, path, body)
        found["carried"] += page["carried"]
        found["refused"] += page["refused"]
        if task is None and on_page is not None:
            on_page(page)
        if page["next"] is None:
            return found
        body["cursor"] = page["next"]


def _sent(connection: Connection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Sent again where an answer was lost: what was carried by then is at the head, and is not carried twice."""
    response = connection.request(
        "POST", path, repeatable=True, timeout_seconds=PATIENCE_SECONDS, build=lambda: {"json": body}
    )
    return document_of(response)
