"""Hypernetworks: the versions of a base, their weights, and reverting."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.etags import IMMUTABLE, REVALIDATE, SAFETENSORS, IfNoneMatch, answer, etag, file_answers
from onboard.bases import find_base
from onboard.contract.hypernetworks import HypernetworkDetail, HypernetworkList, HypernetworkReverted
from onboard.domain.access import Scope
from onboard.hypernetworks.line import hypernetwork_artifact, list_hypernetworks, revert_hypernetwork, show_hypernetwork
from onboard.registry.services import Services

router = APIRouter(prefix="/v1/hypernetworks", tags=["hypernetworks"])
_READ = [Depends(requires(Scope.READ))]
BaseDigest = Annotated[
    str | None,
    Query(pattern="^sha256:[0-9a-f]{64}$", description="Digest of a base. Defaults to the default base."),
]
Number = Annotated[int, Path(ge=1, le=999_999_999)]
_FILE = file_answers("The weights.")


@router.get("", dependencies=_READ)
def list_line(services: OpenServices, base: BaseDigest = None) -> HypernetworkList:
    """List the hypernetworks of a base, oldest first; `head` marks the one that new tasks are learned with."""
    return list_hypernetworks(services.database, digest_of_base(services, base))


@router.get("/{version}.safetensors", response_class=Response, responses=_FILE, dependencies=_READ)
def download_hypernetwork(
    version: Number, services: OpenServices, base: BaseDigest = None, if_none_match: IfNoneMatch = None
) -> Response:
    """Download the weights of a version; their SHA-256 is the ETag."""
    artifact = hypernetwork_artifact(services.database, digest_of_base(services, base), version)
    # without a digest of the base, the address may later mean another file
    caching = IMMUTABLE if base else REVALIDATE
    return answer(lambda: _weights(services, artifact), etag(artifact), if_none_match, SAFETENSORS, caching)


@router.get("/{version}", dependencies=_READ)
def show_version(version: Number, services: OpenServices, base: BaseDigest = None) -> HypernetworkDetail:
    """Return a version: digest, parent, the job that tuned it, everything pinned to it, and the guard's verdict."""
    return show_hypernetwork(services.database, digest_of_base(services, base), version)


@router.post("/{version}/revert", dependencies=[Depends(requires(Scope.OPS))])
def revert_to_version(version: Number, services: OpenServices, base: BaseDigest = None) -> HypernetworkReverted:
    """Make a version the head again: new tasks are learned under it, and published versions do not change."""
    return revert_hypernetwork(services.database, digest_of_base(services, base), version)


def _weights(services: Services, artifact: str) -> FilePath | bytes:
    return services.file(artifact) or services.read(artifact)


def digest_of_base(services: Services, digest: str | None) -> str:
    """Return the digest, by default of the default base."""
    return digest or _default_digest(services.settings.base)


@lru_cache(maxsize=8)
def _default_digest(name: str) -> str:
    """Return the digest of a base; cached, as its files do not change while a service runs, and hashing
    takes a while.
    """
    return find_base(name).digest
