"""Deleting a task for good at a service."""

from __future__ import annotations

from typing import Any

from onboard.client.connection import PATIENCE_SECONDS, Connection, document_of
from onboard.domain.names import require_name
from onboard.errors import UnavailableError


def delete_task(connection: Connection, task: str, unlearn: bool, dry_run: bool) -> dict[str, Any]:
    """See `Onboard.delete_task`."""
    asked = {"unlearn": unlearn, "dry_run": dry_run}
    params = {name: "true" for name, wanted in asked.items() if wanted}
    response = connection.request(
        "DELETE", f"/v1/tasks/{require_name(task)}", repeatable=False, timeout_seconds=PATIENCE_SECONDS,
        build=lambda: {"params": params},
    )  # fmt: skip
    document = document_of(response)
    if not document:
        raise UnavailableError(
            f"The service is of an earlier version: it has only hidden {task!r}.",
            "Upgrade the service, then delete the task again.",
        )
    return document
