"""Aliases: show, move with If-Match, history, rollback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.etags import REVALIDATE, IfMatch, etag, matches
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.contract.jobs import NAME
from onboard.contract.versions import AliasDocument, AliasMoveDocument, AliasWanted
from onboard.domain.access import Scope
from onboard.domain.canary import alias_tag
from onboard.domain.names import MOST_LETTERS
from onboard.domain.task import AliasMove
from onboard.errors import PreconditionFailedError, PreconditionRequiredError
from onboard.jobs.waking import start_webhook_worker
from onboard.registry.aliases import state_text, tag_of
from onboard.registry.services import Services
from onboard.versions.promote import alias_history, meaning, promote, rollback

router = APIRouter(prefix="/v1/tasks/{task}/aliases", tags=["aliases"])
AliasName = Annotated[str, Path(pattern=NAME, max_length=MOST_LETTERS, description="latest, production, …")]
IfNew = Annotated[
    str | None, Header(alias="If-None-Match", description="`*` succeeds only if the alias does not exist yet.")
]
_PROMOTE = [Depends(requires(Scope.PROMOTE))]
_MOVES = 100  # that are shown


@dataclass(frozen=True, slots=True)
class _Seen:
    """The state of an alias that the client has seen: its ETag, or that it does not exist."""

    if_match: str | None
    nothing: bool


async def _seen(if_match: IfMatch = None, if_none_match: IfNew = None) -> _Seen:
    return _Seen(if_match, nothing=if_none_match == "*" and if_match is None)


@router.get("/{alias}", dependencies=[Depends(requires(Scope.READ))])
def show_alias(task: TaskName, alias: AliasName, services: OpenServices, response: Response) -> AliasDocument:
    """Return the version that the alias names, its canary, its ETag for a later change, and its history."""
    version, canary, history = alias_history(services.database, task, alias, _MOVES)
    response.headers.update({"ETag": etag(tag_of(version, canary)), "Cache-Control": REVALIDATE})
    moves = tuple(AliasMoveDocument.of(move) for move in history)
    names = moves[0].names if moves else None
    return AliasDocument(
        task=task, alias=alias, version=version, names=names, history=moves,
        canary=None if canary is None else canary.version, share=None if canary is None else canary.share,
    )  # fmt: skip


@router.put("/{alias}", dependencies=_PROMOTE)
def move_alias(
    task: TaskName,
    alias: AliasName,
    body: AliasWanted,
    services: OpenServices,
    shelf: OpenShelf,
    response: Response,
    seen: Annotated[_Seen, Depends(_seen)],
) -> AliasMoveDocument:
    """Move the alias to a version, which ends its canary. With `share`, the version becomes its canary instead.
    Requires If-Match, or `If-None-Match: *` for a new alias.
    """
    expected = 0 if seen.nothing else _expected(services, task, alias, seen.if_match)
    version, better = f"{task}@v{body.version}", body.if_better
    move = promote(
        services, version, alias, if_better=better, as_before=body.as_before, share=body.share,
        expected=expected, manifests=shelf.manifests,
    )  # fmt: skip
    start_webhook_worker(services)
    return _told(move, response)


@router.post("/{alias}/rollback", dependencies=_PROMOTE)
def roll_alias_back(
    task: TaskName, alias: AliasName, services: OpenServices, response: Response, if_match: IfMatch = None
) -> AliasMoveDocument:
    """Move the alias back to the previous version; repeat to go back further. If it has a canary, only that ends.
    Requires If-Match.
    """
    expected = _expected(services, task, alias, if_match)
    move = rollback(services, task, alias, expected=expected)
    start_webhook_worker(services)
    return _told(move, response)


def _expected(services: Services, task: str, alias: str, if_match: str | None) -> str:
    """Return the tag of the alias's version and canary, if the client has seen them; the move checks them again."""
    if if_match is None:
        raise PreconditionRequiredError("if-match-missing", field="If-Match")
    present, canary = meaning(services.database, task, alias)
    tag = tag_of(present, canary)
    if present is None or not matches(if_match, etag(tag)):
        now = state_text(present, canary)
        raise PreconditionFailedError("alias-changed-meanwhile", task=task, alias=alias, version=present, now=now)
    return tag


def _told(move: AliasMove, response: Response) -> AliasMoveDocument:
    response.headers["ETag"] = etag(alias_tag(move.version, move.canary, move.share))
    return AliasMoveDocument.of(move)
