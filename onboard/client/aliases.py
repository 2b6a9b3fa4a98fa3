"""Move aliases safely: moves by others are never overwritten, and a lost response does not lose a move.

A move sends the expected version in If-Match. After a lost response it is not simply repeated, because it may have
arrived and been reverted since. The alias's history shows what happened and who moved it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onboard.client.asking import get
from onboard.client.connection import PATIENCE_SECONDS, document_of, pause_after
from onboard.client.steps import Request, Steps
from onboard.contract.versions import AliasMoveDocument
from onboard.errors import NotFoundError, PreconditionFailedError, UnavailableError


def promote(
    task: str, alias: str, version: int, attempts: int, *, if_better: bool, as_before: bool
) -> Steps[AliasMoveDocument]:
    """Point the alias at a version. Creates a new alias."""
    path = f"/v1/tasks/{task}/aliases/{alias}"
    body = {"version": version, "if_better": if_better, **({"as_before": True} if as_before else {})}
    return (yield from _moved("PUT", path, path, body, (yield from _history(path)), attempts))


def rollback(task: str, alias: str, attempts: int) -> Steps[AliasMoveDocument]:
    """Point the alias at its previous version. Raises NotFoundError if it does not exist."""
    path = f"/v1/tasks/{task}/aliases/{alias}"
    return (yield from _moved("POST", f"{path}/rollback", path, None, (yield from _shown(path)), attempts))


def _shown(path: str) -> Steps[list[AliasMoveDocument]]:
    document = yield from get(path)
    return [move.parsed(AliasMoveDocument) for move in document.parts("history")]


def _history(path: str) -> Steps[list[AliasMoveDocument]]:
    """Return the last moves, newest first; none if the alias or the task does not exist."""
    try:
        return (yield from _shown(path))
    except NotFoundError:
        return []


def _moved(
    method: str, path: str, shown_at: str, body: Mapping[str, Any] | None, before: Sequence[AliasMoveDocument],
    attempts: int,
) -> Steps[AliasMoveDocument]:  # fmt: skip
    headers = {"If-Match": f'"v{before[0].version}"'} if before else {"If-None-Match": "*"}
    build = dict if body is None else lambda: {"json": body}
    move = Request(method, path, False, headers, PATIENCE_SECONDS, attempts=1, build=build)
    lost: UnavailableError | None = None
    for attempt in range(1, attempts + 1):
        try:
            return document_of((yield move)).parsed(AliasMoveDocument)
        except PreconditionFailedError:
            if lost is None:
                raise
        except UnavailableError as error:
            lost = error
        arrived = yield from _arrived(shown_at, body, before)
        if arrived is not None:
            return arrived
        if attempt < attempts:
            yield pause_after(attempt, lost)
    assert lost is not None
    raise lost


def _arrived(
    path: str, body: Mapping[str, Any] | None, before: Sequence[AliasMoveDocument]
) -> Steps[AliasMoveDocument | None]:
    """Return the requested move, if it is the only one since then; None if there was none.

    Raises:
        PreconditionFailedError: somebody else moved the alias, before or after it.
    """
    history = yield from _history(path)
    since = history[: history.index(before[0])] if before and before[0] in history else history
    if not since:
        return None
    (last, *earlier) = since
    is_ours = last.reason == "rollback" if body is None else last.version == body["version"]
    me = (yield from get("/v1/me")).read("actor", str)
    if is_ours and not earlier and last.actor == me:
        return last
    raise PreconditionFailedError(
        "alias-moved-meanwhile", task=last.task, alias=last.alias, version=last.version, actor=last.actor or "somebody"
    )
