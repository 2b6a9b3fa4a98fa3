"""Pages for priors, with a chart of their benefit for later tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page
from onboard.api.routes.hypernetworks import BaseDigest, digest_of_base
from onboard.contract.priors import HelpedDocument
from onboard.domain.access import Scope
from onboard.hypernetworks.prior.line import list_priors
from onboard.report.charts import RowChart, Scale, Track

_READ: Final = [Depends(requires(Scope.READ))]
_MOST_BARS: Final = 30

router = APIRouter(prefix="/priors", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_priors(request: Request, services: OpenServices, base: BaseDigest = None) -> Response:
    """Show the versions of a base's priors, and their contributions."""
    document = list_priors(services.database, digest_of_base(services, base))
    return page(request, "priors.html", document, chart=chart_of(document.helped))


def chart_of(helped: Sequence[HelpedDocument]) -> RowChart | None:
    """Return a bar per version with a measured contribution of earlier tasks, newest first; None without any."""
    judged = [(line, line.prior.gain) for line in helped if line.prior.gain is not None]
    if not judged:
        return None
    gains = [gain for _, gain in judged]
    shown = judged[: -_MOST_BARS - 1 : -1]
    scale = Scale.around([0.0, 1.0, *(gain for _, gain in shown)])
    tracks = [
        Track(
            label=line.version, shown=f"{gain:+.1f}", at=scale.at(gain),
            detail=f"{line.prior.without:.1f} → {line.prior.with_prior:.1f}",
        )
        for line, gain in shown
    ]  # fmt: skip
    return RowChart(
        title=f"Points that earlier tasks added: {sum(gains) / len(gains):+.1f} on average, over {len(gains)} versions",
        tracks=tracks,
        caption="Accuracy or micro-F1 of the readout with earlier tasks minus without, on cross-validated rows.",
        ticks=[(scale.at(tick), f"{tick:g}") for tick in scale.ticks()],
        origin=scale.at(0.0),
    )
