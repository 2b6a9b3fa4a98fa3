"""Check a dataset without queuing or keeping anything."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices
from onboard.api.forms import DatasetForm, described
from onboard.api.intake import Intake
from onboard.api.receiving import ReceivedDataset
from onboard.api.remedies import findings_over_http
from onboard.contract.checks import CheckDocument
from onboard.domain.access import Scope
from onboard.jobs.pace import pace_of

router = APIRouter(prefix="/v1/check", tags=["jobs"], dependencies=[Depends(requires(Scope.SUBMIT))])


@router.post("", response_model=CheckDocument, openapi_extra=described(DatasetForm))
def check_dataset(
    received: ReceivedDataset, services: OpenServices, request: Request, left: ClientLeft
) -> dict[str, Any]:
    """Check a dataset and estimate the duration of its job."""
    intake: Intake = request.app.state.intake
    pace = pace_of(services.database)
    report = intake.check(received.submission(), received.upload.content_bytes, left, pace)
    return {**report, "warnings": findings_over_http(report["warnings"])}
