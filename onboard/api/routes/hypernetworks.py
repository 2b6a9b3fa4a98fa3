"""Hypernetworks: the line of a base, and the weights of each version."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.etags import IMMUTABLE, REVALIDATE, UNCHANGED, IfNoneMatch, answer, etag
from onboard.api.schemas.versions import HypernetworkDocument, HypernetworkList
from onboard.api.shelf import SAFETENSORS
from onboard.bases import find_base
from onboard.domain.access import Scope
from onboard.domain.task import BaseRecord
from onboard.registry.bases import BaseRepository
from onboard.services import Services

router = APIRouter(prefix="/v1/hypernetworks", tags=["hypernetworks"], dependencies=[Depends(requires(Scope.READ))])
BaseDigest = Annotated[
    str | None,
    Query(pattern="^sha256:[0-9a-f]{64}$", description="Digest of a base; without it the default one."),
]
Number = Annotated[int, Path(ge=1, le=999_999_999)]
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The weights.", "content": {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}}},
    **UNCHANGED,
}


@router.get("", response_model=HypernetworkList)
def list_hypernetworks(services: OpenServices, base: BaseDigest = None) -> dict[str, Any]:
    """The line of a base, oldest first; `head` marks the one that new tasks are learned with."""
    with services.database.read() as session:
        record = _record(services, BaseRepository(session), base)
        found = BaseRepository(session).hypernetworks(record.digest)
    return {
        "base_digest": record.digest,
        "hypernetworks": [{**each.to_json(), "head": each.version == record.head} for each in found],
    }


@router.get("/{version}.safetensors", response_class=Response, responses=_FILE)
def download_hypernetwork(
    version: Number, services: OpenServices, base: BaseDigest = None, if_none_match: IfNoneMatch = None
) -> Response:
    """The weights of a version; their SHA-256 is the ETag."""
    with services.database.read() as session:
        repository = BaseRepository(session)
        found = repository.hypernetwork(_record(services, repository, base).digest, version)
    # without a digest of the base the same address may mean another file some day
    caching = IMMUTABLE if base else REVALIDATE
    return answer(lambda: _weights(services, found.artifact), etag(found.artifact), if_none_match, SAFETENSORS, caching)


@router.get("/{version}", response_model=HypernetworkDocument)
def show_hypernetwork(version: Number, services: OpenServices, base: BaseDigest = None) -> dict[str, Any]:
    """One version: digest, parent, the job that tuned it."""
    with services.database.read() as session:
        repository = BaseRepository(session)
        record = _record(services, repository, base)
        found = repository.hypernetwork(record.digest, version)
    return {**found.to_json(), "head": found.version == record.head}


def _weights(services: Services, artifact: str) -> FilePath | bytes:
    return services.file(artifact) or services.read(artifact)


def _record(services: Services, repository: BaseRepository, digest: str | None) -> BaseRecord:
    return repository.get(digest or _default_digest(services.settings.base))


@lru_cache(maxsize=8)
def _default_digest(name: str) -> str:
    """Read once: a base's files do not change while a service runs, and hashing them takes a while."""
    return find_base(name).digest
