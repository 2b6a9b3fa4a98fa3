"""Judge a service's workers and queues for `onboard doctor`, from the same documents locally and remotely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onboard.domain.release import release_name, release_of
from onboard.errors import ConflictError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection

    from cli.output import Document

_WHERE = "where the service is: "


def workers_standing(seen: Document, release: int, dead: Collection[str] = ()) -> str:
    """The live workers in a line; empty if there are none.

    Args:
        seen: the document of `onboard workers list --json`.
        release: of the service's code; older workers leave its jobs alone.
        dead: names of workers whose process is gone, whatever their heartbeat says.

    Raises:
        UnavailableError: one cannot load what jobs need, or is unresponsive.
        ConflictError: one is older than the service.
    """
    live = [worker for worker in seen["workers"] if worker["state"] != "lost" and worker["worker"] not in dead]
    _require_able(live)
    _require_as_new(live, release)
    deaf = [worker for worker in live if worker["facts"].get("deaf_seconds")]
    if deaf:
        worker, seconds = deaf[0]["worker"], deaf[0]["facts"]["deaf_seconds"]
        raise UnavailableError("worker-does-not-listen", seconds=seconds, worker=worker)
    return ", ".join(_line(worker) for worker in live)


def require_served(seen: Document, *, near: bool, embedded: bool = False, dead: bool = False) -> None:
    """Whether somebody takes the jobs that wait, those that a dead worker left among them.

    Args:
        seen: the document of `onboard queue show --json`.
        embedded: whether one that has nothing left to do should leave.
        dead: whether the only workers are known to be dead.

    Raises:
        UnavailableError: nobody does.
    """
    stranded = [
        queue
        for queue in seen["queues"]
        if not queue["paused"] and (queue["unserved"] or (dead and queue["queued"] + queue["running"]))
    ]
    if not stranded:
        return
    names = ", ".join(queue["queue"] for queue in stranded)
    lost = sum(queue["running"] if dead else queue["lost"] for queue in stranded)
    left = f"; {lost} of them were running on a worker that died" if lost else ""
    idle = " --idle-exit 60" if embedded else ""
    raise UnavailableError(
        "queue-without-worker",
        names=names,
        left=left,
        where="" if near else _WHERE,
        queue=stranded[0]["queue"],
        idle=idle,
    )


def _line(worker: Document) -> str:
    renewals = worker["facts"].get("renewals") or 0
    once = "once" if renewals == 1 else f"{renewals} times"
    return f"{worker['worker']} on {worker['device']}" + (f" (was unresponsive, restarted {once})" if renewals else "")


def _require_able(live: list[Document]) -> None:
    """Raise UnavailableError where a worker takes no jobs, or leaves some to others, and say why."""
    troubled = [(worker["worker"], trouble) for worker in live if (trouble := worker["facts"].get("trouble"))]
    if troubled:
        name, trouble = troubled[0]
        does = "takes no jobs" if trouble.get("stops") else "leaves jobs to other workers"
        more = f" So do {len(troubled) - 1} more." if len(troubled) > 1 else ""
        raise UnavailableError(
            "worker-in-trouble",
            name=name,
            does=does,
            reason=trouble["message"],
            more=more,
            remedy=str(trouble.get("remedy", "")),
        )


def _require_as_new(live: list[Document], release: int) -> None:
    behind = [worker for worker in live if release_of(worker["facts"]) < release]
    older = [f"{worker['worker']} has {worker['facts']['onboard']}" for worker in behind]
    if older:
        raise ConflictError("workers-outdated", release=release_name(release), older=list(older))
