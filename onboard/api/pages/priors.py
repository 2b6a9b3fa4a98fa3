"""Pages for priors, with a chart of their benefit for later tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page
from onboard.api.routes.hypernetworks import BaseDigest, digest_of_base
from onboard.contract.priors import HelpedDocument
from onboard.domain.access import Scope
from onboard.hypernetworks.prior.line import list_priors

_READ: Final = [Depends(requires(Scope.READ))]
_MOST_BARS: Final = 60
_WIDTH: Final = 12  # of a bar and the gap after it
_HALF: Final = 60  # of the chart's height

router = APIRouter(prefix="/priors", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_priors(request: Request, services: OpenServices, base: BaseDigest = None) -> Response:
    """Show the versions of a base's priors, and their contributions."""
    document = list_priors(services.database, digest_of_base(services, base))
    return page(request, "priors.html", document, chart=chart_of(document.helped))


def chart_of(helped: Sequence[HelpedDocument]) -> dict[str, Any] | None:
    """Return a bar per version with a measured contribution of earlier tasks, oldest first; None without any."""
    judged = [line for line in helped if line.prior.gain is not None][-_MOST_BARS:]
    gains = [line.prior.gain or 0.0 for line in judged]
    if not gains:
        return None
    most = max(1.0, *map(abs, gains))
    bars = [
        {"x": _WIDTH * place, "y": round(_HALF - max(gain, 0.0) / most * _HALF, 1), "version": line.version,
         "height": round(max(abs(gain) / most * _HALF, 0.5), 1), "gain": gain}
        for place, (line, gain) in enumerate(zip(judged, gains, strict=True))
    ]  # fmt: skip
    return {
        "bars": bars, "width": _WIDTH * len(bars), "height": 2 * _HALF, "middle": _HALF, "bar": _WIDTH - 2,
        "most": most, "mean": sum(gains) / len(gains),
    }  # fmt: skip
