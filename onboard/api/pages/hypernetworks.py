"""Pages for hypernetworks: the versions of a base, one version with the guard's verdicts, and reverting."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Path, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page, to
from onboard.api.routes.hypernetworks import BaseDigest, digest_of_base
from onboard.domain.access import Scope
from onboard.hypernetworks.line import list_hypernetworks, revert_hypernetwork, show_hypernetwork
from onboard.report.tuned import GUARD_HEAD, guard_notes, guard_rows

_READ: Final = [Depends(requires(Scope.READ))]
_OPS: Final = [Depends(requires(Scope.OPS))]
Number = Annotated[int, Path(ge=1, le=999_999_999)]

router = APIRouter(prefix="/hypernetworks", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_line(request: Request, services: OpenServices, base: BaseDigest = None) -> Response:
    """Show the versions of a base, newest first."""
    return page(request, "hypernetworks.html", list_hypernetworks(services.database, digest_of_base(services, base)))


@router.get("/{version}", dependencies=_READ)
@router.get("/{version}.json", dependencies=_READ)
def show_one(version: Number, request: Request, services: OpenServices, base: BaseDigest = None) -> Response:
    """Show a version, the tasks and versions pinned to it, and the guard's verdict on each earlier task."""
    document = show_hypernetwork(services.database, digest_of_base(services, base), version)
    guard = {} if document.guard is None else document.guard.to_json()
    more: dict[str, Any] = {"guard_head": GUARD_HEAD, "guard": guard_rows(guard), "notes": guard_notes(guard)}
    return page(request, "hypernetwork.html", document, **more)


@router.post("/{version}/revert", dependencies=_OPS)
def revert(version: Number, services: OpenServices, base: Annotated[str, Form(max_length=80)]) -> Response:
    """Make a version the head again."""
    revert_hypernetwork(services.database, base, version)
    return to(f"/hypernetworks/{version}?base={digest_of_base(services, base)}")
