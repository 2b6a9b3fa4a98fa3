"""Checking a dataset: nothing is queued, nothing is kept."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from onboard.api.access import requires
from onboard.api.deps import ClientLeft
from onboard.api.receiving import ReceivedDataset, described
from onboard.api.schemas.jobs import CheckDocument, DatasetForm
from onboard.domain.access import Scope

router = APIRouter(prefix="/v1/check", tags=["jobs"], dependencies=[Depends(requires(Scope.SUBMIT))])


@router.post("", response_model=CheckDocument, openapi_extra=described(DatasetForm))
def check_dataset(received: ReceivedDataset, request: Request, left: ClientLeft) -> dict[str, Any]:
    """The checks of a dataset and an estimate of its job's time."""
    document: dict[str, Any] = request.app.state.intake.check(received.order(), received.upload.content_bytes, left)
    return document
