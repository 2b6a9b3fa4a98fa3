"""Tasks: search, show, versions, delete."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query

from onboard.api.access import requires
from onboard.api.deps import Cursor, Limit, OpenServices, decode_name, decode_number, encode_cursor
from onboard.contract.deleting import DeletedDocument
from onboard.contract.jobs import NAME
from onboard.contract.versions import TaskDetail, TaskList, VersionList
from onboard.domain.access import Scope
from onboard.domain.names import MOST_LETTERS
from onboard.domain.task_search import TaskSearch
from onboard.jobs.waking import start_webhook_worker, wake
from onboard.versions import delete
from onboard.versions import describe as tasks

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])
TaskName = Annotated[str, Path(pattern=NAME, max_length=MOST_LETTERS, description="Name of a task.")]
_READ = [Depends(requires(Scope.READ))]


async def _search(
    label: Annotated[str | None, Query(max_length=1000, description="Only tasks that have this label.")] = None,
    kind: Annotated[Literal["classification", "regression", "multilabel"] | None, Query()] = None,
    metric: Annotated[
        str | None, Query(max_length=64, description="Only tasks whose latest version has this metric.")
    ] = None,
    at_least: Annotated[
        float | None,
        Query(allow_inf_nan=False, description="Minimum value of the metric; for log_loss and mse, the maximum."),
    ] = None,
    weak: Annotated[bool | None, Query(description="Only tasks whose latest version is weak, or is not.")] = None,
) -> TaskSearch:
    return TaskSearch(label, kind, metric, at_least, weak)


@router.get("", response_model=TaskList, dependencies=_READ)
def list_tasks(
    services: OpenServices,
    search: Annotated[TaskSearch, Depends(_search)],
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List tasks by name, each with its latest version."""
    documents = tasks.list_tasks(services.database, search, limit + 1, decode_name("tasks", cursor))
    page = documents[:limit]
    return {"tasks": page, "next": encode_cursor("tasks", page[-1]["task"]) if len(documents) > limit else None}


@router.get("/{task}", response_model=TaskDetail, dependencies=_READ)
def show_task(task: TaskName, services: OpenServices) -> dict[str, Any]:
    """Return a task with its latest version and its aliases."""
    return tasks.describe_task(services.database, task)


@router.delete("/{task}", response_model=DeletedDocument, dependencies=[Depends(requires(Scope.ADMIN))])
def delete_task(
    task: TaskName,
    services: OpenServices,
    unlearn: Annotated[bool, Query(description="Rebuild descendants from their own rows.")] = False,
    dry_run: Annotated[
        bool, Query(description="List what would be deleted and its descendants, without deleting.")
    ] = False,
) -> DeletedDocument:
    """Delete a task permanently: rows, versions, requests, results. Its version numbers are never reused."""
    deleted = delete.delete_task(services, task, unlearning=unlearn, dry_run=dry_run)
    if not dry_run:
        for queue in sorted(deleted.queues):
            wake(services, queue, outside=True)
        start_webhook_worker(services)
    return deleted.to_document()


@router.get("/{task}/versions", response_model=VersionList, dependencies=_READ)
def list_versions(
    task: TaskName,
    services: OpenServices,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the newest versions of a task, by number."""
    return tasks.versions_page(services.database, task, limit, decode_number(cursor))
