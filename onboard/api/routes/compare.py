"""Compare two versions of a task, and measure versions on a file of labeled rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from onboard.api.access import requires
from onboard.api.forms import EvaluationForm, described
from onboard.api.labelled_rows import OpenFile
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.contract.evaluations import ComparisonDocument, EvaluationDocument
from onboard.contract.jobs import NAME
from onboard.domain.access import Scope
from onboard.domain.evaluation import Evaluation
from onboard.domain.names import LATEST, MOST_LETTERS, Reference

router = APIRouter(prefix="/v1/tasks/{task}", tags=["versions"])
_READ = [Depends(requires(Scope.READ))]
_SUBMIT = [Depends(requires(Scope.SUBMIT))]  # reads a file, like a submission
_BODY = described(EvaluationForm, Evaluation)
Ref = Annotated[str, Query(pattern=NAME, max_length=MOST_LETTERS, description="latest, vN or an alias.")]


@router.get("/compare", response_model=ComparisonDocument, dependencies=_READ)
def compare_versions(task: TaskName, a: Ref, b: Ref, shelf: OpenShelf) -> Response:
    """Compare metrics, confusion, flipped answers and the paired interval; the verdict is about `b`. One at a time."""
    comparison = shelf.comparison(Reference.parse(f"{task}@{a}"), Reference.parse(f"{task}@{b}"))
    return Response(comparison, media_type="application/json")


@router.post("/compare", response_model=ComparisonDocument, dependencies=_SUBMIT, openapi_extra=_BODY)
def compare_versions_on_rows(task: TaskName, a: Ref, b: Ref, file: OpenFile) -> Response:
    """Compare two versions on the rows of a file, without rows that either was trained on."""
    comparison = file.compared(Reference.parse(f"{task}@{a}"), Reference.parse(f"{task}@{b}"))
    return Response(comparison, media_type="application/json")


@router.post("/evaluate", response_model=EvaluationDocument, dependencies=_SUBMIT, openapi_extra=_BODY)
def evaluate_version_on_rows(task: TaskName, file: OpenFile, ref: Ref = LATEST) -> Response:
    """Measure a version on the rows of a file, without rows that it was trained on."""
    return Response(file.evaluated(Reference.parse(f"{task}@{ref}")), media_type="application/json")
