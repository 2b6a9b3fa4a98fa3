"""Priors: the versions of a base's priors, and their benefit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.routes.hypernetworks import BaseDigest, digest_of_base
from onboard.contract.priors import PriorDetail, PriorList
from onboard.domain.access import Scope
from onboard.domain.prior import Form
from onboard.hypernetworks.prior.line import list_priors, show_prior

router = APIRouter(prefix="/v1/priors", tags=["priors"])
_READ = [Depends(requires(Scope.READ))]
OfForm = Annotated[Form, Path(description="Prior for tasks with single texts, or with pairs.")]
Number = Annotated[int | None, Query(ge=1, le=999_999_999, description="Number of a version. Defaults to the head.")]


@router.get("", dependencies=_READ)
def list_priors_of_base(services: OpenServices, base: BaseDigest = None) -> PriorList:
    """List the versions of a base's priors, with marked heads, and their benefit for its newest versions."""
    return list_priors(services.database, digest_of_base(services, base))


@router.get("/{form}", dependencies=_READ)
def show_prior_version(
    form: OfForm, services: OpenServices, version: Number = None, base: BaseDigest = None
) -> PriorDetail:
    """Return a version, by default the head, with the tasks that taught it."""
    return show_prior(services.database, digest_of_base(services, base), form, version)
