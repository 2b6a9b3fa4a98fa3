"""Move aliases safely: moves by others are never overwritten, and a lost response does not lose a move.

A move sends the expected version in If-Match. After a lost response it is not simply repeated, because it may have
arrived and been reverted since. The alias's history shows what happened and who moved it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.client.asking import get
from onboard.client.connection import PATIENCE_SECONDS, document_of, pause_after
from onboard.client.steps import Request, Steps
from onboard.contract.versions import AliasMoveDocument
from onboard.domain.canary import CANARY_ENDED, alias_tag, require_share
from onboard.errors import NotFoundError, PreconditionFailedError, UnavailableError

_ROLLED_BACK: Final = ("rollback", CANARY_ENDED)  # reasons in the history


def promote(
    task: str, alias: str, version: int, attempts: int, *, if_better: bool, as_before: bool, share: float | None = None
) -> Steps[AliasMoveDocument]:
    """Point the alias at a version. Creates a new alias. With `share` the version becomes its canary instead."""
    path = f"/v1/tasks/{task}/aliases/{alias}"
    body: dict[str, Any] = {"version": version, "if_better": if_better, **({"as_before": True} if as_before else {})}
    if share is not None:
        body["share"] = require_share(share)
    return (yield from _moved("PUT", path, path, body, (yield from _history(path)), attempts))


def rollback(task: str, alias: str, attempts: int) -> Steps[AliasMoveDocument]:
    """Point the alias at its previous version, or end its canary. Raises NotFoundError if it does not exist."""
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
    headers = {"If-Match": f'"{_tag(before[0])}"'} if before else {"If-None-Match": "*"}
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
    is_ours = last.reason in _ROLLED_BACK if body is None else _made_by(last, body)
    me = (yield from get("/v1/me")).read("actor", str)
    if is_ours and not earlier and last.actor == me:
        return last
    raise PreconditionFailedError(
        "alias-moved-meanwhile", task=last.task, alias=last.alias, version=last.version, actor=last.actor or "somebody"
    )


def _made_by(move: AliasMoveDocument, body: Mapping[str, Any]) -> bool:
    """Return whether an entry of the history is what the request asks to do."""
    share = body.get("share")
    if share is None:
        return move.version == body["version"] and move.canary is None
    if share == 0:
        return move.version == move.previous and move.canary is None
    return (move.canary, move.share) == (body["version"], share)


def _tag(move: AliasMoveDocument) -> str:
    """Return the alias's tag after a move."""
    return alias_tag(move.version, move.canary, move.share)
