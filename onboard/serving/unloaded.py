"""Validate requests before a model is loaded: which versions they name, and whether these take the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onboard.contract.requests import PredictionRequest, require_fitting
from onboard.domain.prediction import Outcome, Unanswered
from onboard.domain.task import EmbeddingVersion, labels_called
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.versions.describe import resolve_known

Known = dict[str, EmbeddingVersion | NotFoundError]


def look_up(database: Database, requests: Sequence[PredictionRequest]) -> Known:
    """Resolve the references of requests. Raises InputError: a version does not take its input."""
    references = dict.fromkeys(request.reference for request in requests)
    known = resolve_known(database, references)
    with database.read() as session:
        called = AliasRepository(session).names_of(references)
    require_fitting(requests, {
        text: replace(version, labels=labels_called(version.labels, called[text])) if text in called else version
        for text, version in known.items() if isinstance(version, EmbeddingVersion)
    })  # fmt: skip
    return known


def require_known(known: Known) -> None:
    """Raise the error of the first reference that does not exist."""
    for version in known.values():
        if isinstance(version, NotFoundError):
            raise version


def unless_any(requests: Sequence[PredictionRequest], known: Known) -> list[Outcome]:
    """Return the requests' errors if none names an existing version, as no model is needed then; else nothing."""
    errors = {text: error for text, error in known.items() if isinstance(error, NotFoundError)}
    if len(errors) < len(known):
        return []
    return [
        Unanswered(request.reference.task, request.reference.ref, errors[str(request.reference)])
        for request in requests
    ]
