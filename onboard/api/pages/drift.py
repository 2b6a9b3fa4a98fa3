"""Whether the texts of a task have changed, with a chart of its weeks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.compare import Ref
from onboard.api.pages.frame import page
from onboard.api.routes.tasks import TaskName
from onboard.contract.drift import DriftWeek
from onboard.domain.access import Scope
from onboard.domain.names import LATEST
from onboard.versions.drift import drift_of

_READ: Final = [Depends(requires(Scope.READ))]
_WIDTH: Final = 44  # of a week in the chart
_HEIGHT: Final = 120
_NAMED: Final = {
    "labels": "labels (stability index)", "confidence": "confidence (stability index)",
    "unknown": "more unknown texts", "features": "features (distance of the means)",
}  # fmt: skip

router = APIRouter(prefix="/tasks/{task}", include_in_schema=False)


@router.get("/drift", dependencies=_READ)
@router.get("/drift.json", dependencies=_READ)
def show_drift(task: TaskName, request: Request, services: OpenServices, ref: Ref = LATEST) -> Response:
    """Show a version's newest week, compared with its training rows and the week before."""
    document = drift_of(services, f"{task}@{ref}")
    return page(request, "drift.html", document.to_json(), ref=ref, chart=chart_of(document.weeks), named=_NAMED)


def chart_of(weeks: Sequence[DriftWeek]) -> dict[str, Any] | None:
    """A stack of the labels' shares for every week, oldest first, and a line of the unknown texts; None of no week."""
    if not weeks:
        return None
    labels = list(weeks[-1].labels)
    stacks = []
    for place, week in enumerate(weeks):
        total, y, parts = sum(week.labels.values()) or 1.0, 0.0, []
        for number, label in enumerate(labels):
            height = _HEIGHT * week.labels.get(label, 0.0) / total
            parts.append({
                "label": label, "share": week.labels.get(label, 0.0), "y": round(y, 1), "height": round(height, 1),
                "shade": round(0.25 + 0.6 * (number % 5) / 4, 2),
            })  # fmt: skip
            y += height
        stacks.append({"x": _WIDTH * place, "week": week, "parts": parts})
    points = [
        f"{_WIDTH * place + _WIDTH // 2 - 2},{_HEIGHT * (1 - week.unknown):.1f}"
        for place, week in enumerate(weeks)
        if week.unknown is not None
    ]
    return {
        "stacks": stacks, "width": _WIDTH * len(weeks), "height": _HEIGHT, "bar": _WIDTH - 4,
        "points": " ".join(points),
    }  # fmt: skip
