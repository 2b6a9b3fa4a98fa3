"""Validate requests before a model is loaded: which versions they name, and whether these take the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onboard.contract.requests import PredictionRequest, require_fitting
from onboard.domain.names import Reference
from onboard.domain.prediction import Outcome, Unanswered
from onboard.domain.task import AliasNames, EmbeddingVersion, fitting_names, labels_called
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.versions.describe import resolve_known

Known = dict[str, EmbeddingVersion | NotFoundError]


def look_up(database: Database, requests: Sequence[PredictionRequest]) -> Known:
    """Resolve the references of requests. Raises InputError: the version that answers an input does not take it."""
    references = dict.fromkeys(request.reference for request in requests)
    known = resolve_known(database, references)
    with database.read() as session:
        called = AliasRepository(session).names_of(references)
        canaries = AliasRepository(session).canaries_of(references)
    tasks = {str(reference): reference.task for reference in references}
    second = {text: Reference(tasks[text], None, canary.version) for text, canary in canaries.items()}
    known_canaries = resolve_known(database, second.values()) if second else {}
    main = {text: _renamed(version, called.get(text)) for text, version in known.items()}
    shared = {text: _renamed(known_canaries[str(named)], called.get(text)) for text, named in second.items()}

    def answering(request: PredictionRequest) -> EmbeddingVersion | None:
        reference = request.reference
        canary = canaries.get(str(reference))
        if canary and canary.answers(reference.task, str(reference.alias), request.text_a, request.text_b):
            return shared[str(reference)]
        return main[str(reference)]

    require_fitting(requests, [answering(request) for request in requests])
    return known


def _renamed(version: EmbeddingVersion | NotFoundError, names: AliasNames | None) -> EmbeddingVersion | None:
    """Return the version with the label names of the alias, if it has the renamed labels; None without a version."""
    if not isinstance(version, EmbeddingVersion):
        return None
    fitting = fitting_names(version.labels, names)
    return replace(version, labels=labels_called(version.labels, fitting)) if fitting else version


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
