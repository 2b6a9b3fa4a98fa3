"""Bases: their files, for predictions elsewhere. Files are looked up in a list; no path comes from a client."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import FileResponse

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.etags import IMMUTABLE, SAFETENSORS, IfNoneMatch, answer, etag, file_answers, matches
from onboard.api.routes.embeddings import OpenShelf
from onboard.bases import find_base, named_bases
from onboard.bases.documents import base_document
from onboard.contract.versions import BaseDocument, BaseList
from onboard.domain.access import Scope
from onboard.domain.names import MOST_LETTERS

router = APIRouter(prefix="/v1/bases", tags=["bases"], dependencies=[Depends(requires(Scope.READ))])
Digest = Annotated[str, Path(pattern="^sha256:[0-9a-f]{64}$", description="Digest of a base.")]
FileName = Annotated[str, Path(max_length=200, description="Name of a file of the base.")]


@router.get("", response_model=BaseList)
def list_bases(
    name: Annotated[str | None, Query(max_length=MOST_LETTERS, description="Only the base with this name.")] = None,
) -> dict[str, Any]:
    """List the bases that jobs can name, without their files."""
    documents = [_described(str(base.folder), (base.folder / "base.json").stat().st_mtime_ns) for base in named_bases()]
    return {"bases": [document for document in documents if name in (None, document["base"])]}


@router.get("/{digest}", response_model=BaseDocument)
def show_base(digest: Digest, services: OpenServices, shelf: OpenShelf) -> BaseDocument:
    """List the files of a base with their digests; together with an embedding, they are sufficient for predictions."""
    return shelf.manifests.of(services, digest).to_document()


@router.get("/{digest}/{file:path}", response_class=Response, responses=file_answers("The file."))
def download_base_file(
    digest: Digest, file: FileName, services: OpenServices, shelf: OpenShelf, if_none_match: IfNoneMatch = None
) -> Response:
    """Download a file of a base; its SHA-256 is the ETag."""
    listed = shelf.manifests.of(services, digest).file(file)
    tag = etag(listed.digest)
    if matches(if_none_match, tag):
        return answer(bytes, tag, if_none_match, SAFETENSORS, IMMUTABLE)
    return FileResponse(listed.path, media_type=SAFETENSORS, headers={"ETag": tag, "Cache-Control": IMMUTABLE})


@lru_cache(maxsize=32)
def _described(folder: str, _changed_ns: int) -> dict[str, Any]:
    """Describe a base; cached, as hashing its files takes a while."""
    return {**base_document(find_base(folder)), "folder": None}
