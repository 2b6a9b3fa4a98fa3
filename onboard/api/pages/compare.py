"""Compare versions of a task, and measure them on an uploaded file of labeled rows."""

from __future__ import annotations

import json
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.labelled_rows import OpenFile
from onboard.api.pages.frame import page
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.contract.jobs import NAME
from onboard.domain.access import Scope
from onboard.domain.names import LATEST, MOST_LETTERS, Reference

_READ: Final = [Depends(requires(Scope.READ))]
_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]
Ref = Annotated[str, Query(pattern=NAME, max_length=MOST_LETTERS)]
Now = Annotated[bool, Query(description="Wait for the comparison instead of returning a page that loads it.")]

router = APIRouter(prefix="/tasks/{task}", include_in_schema=False)


@router.get("/compare", dependencies=_READ)
@router.get("/compare.json", dependencies=_READ)
def compare(task: TaskName, a: Ref, b: Ref, request: Request, shelf: OpenShelf, now: Now = False) -> Response:
    """Compare two versions on rows that neither was trained on; the verdict is about `b`.

    The first comparison may have to load a model, so the page appears at once and requests the slow part later.
    """
    earlier, later = Reference.parse(f"{task}@{a}"), Reference.parse(f"{task}@{b}")
    made = shelf.comparison_at_hand(earlier, later)
    if made is None and not now and not request.url.path.endswith(".json"):
        return page(request, "comparing.html", {"task": task, "a": a, "b": b})
    return page(request, "compare.html", json.loads(made or shelf.comparison(earlier, later)), a=a, b=b)


@router.post("/compare", dependencies=_SUBMIT)
def compare_on_rows(task: TaskName, a: Ref, b: Ref, request: Request, file: OpenFile) -> Response:
    """Compare them on the rows of a file."""
    made = file.compared(Reference.parse(f"{task}@{a}"), Reference.parse(f"{task}@{b}"))
    return page(request, "compare.html", json.loads(made), a=a, b=b)


@router.get("/evaluate", dependencies=_SUBMIT)
def show_evaluation(task: TaskName, request: Request, ref: Ref = LATEST) -> Response:
    """Show the form to measure a file of labeled rows."""
    return page(request, "evaluate.html", {"task": task, "ref": ref, "measured": None})


@router.post("/evaluate", dependencies=_SUBMIT)
def evaluate(task: TaskName, request: Request, file: OpenFile, ref: Ref = LATEST) -> Response:
    """Measure a version on the rows of a file."""
    measured = json.loads(file.evaluated(Reference.parse(f"{task}@{ref}")))
    return page(request, "evaluate.html", {"task": task, "ref": ref, "measured": measured})
