"""What can be told of requests before a model is loaded: which versions they mean, and whether these take them."""

from __future__ import annotations

from collections.abc import Sequence

from onboard.contract.requests import PredictionRequest, require_fitting
from onboard.domain.prediction import Outcome, Unanswered
from onboard.domain.task import EmbeddingVersion
from onboard.errors import NotFoundError
from onboard.registry.database import Database
from onboard.versions.describe import resolve_known

Known = dict[str, EmbeddingVersion | NotFoundError]


def look_up(database: Database, requests: Sequence[PredictionRequest]) -> Known:
    """What each reference means just now, by its text. Raises InputError: a version does not take what it is asked."""
    known = resolve_known(database, dict.fromkeys(request.reference for request in requests))
    require_fitting(
        requests, {text: version for text, version in known.items() if isinstance(version, EmbeddingVersion)}
    )
    return known


def require_known(known: Known) -> None:
    """Raise the error of the first reference that names nothing."""
    for version in known.values():
        if isinstance(version, NotFoundError):
            raise version


def unless_any(requests: Sequence[PredictionRequest], known: Known) -> list[Outcome]:
    """The requests' errors where not one of them names a version: no model is needed for them. Else nothing."""
    errors = {text: error for text, error in known.items() if isinstance(error, NotFoundError)}
    if len(errors) < len(known):
        return []
    return [
        Unanswered(request.reference.task, request.reference.ref, errors[str(request.reference)])
        for request in requests
    ]
