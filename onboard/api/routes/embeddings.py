"""Embeddings: a version never changes (its ETag is the digest of its file); aliases must be revalidated.

A provisional version may lose its mark, so its document must be revalidated as well; its file never changes.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from onboard.api.access import requires
from onboard.api.etags import IMMUTABLE, REVALIDATE, SAFETENSORS, UNCHANGED, IfNoneMatch, answer, etag, file_answers
from onboard.api.routes.tasks import TaskName
from onboard.api.shelf import Shelf
from onboard.contract.jobs import NAME
from onboard.contract.versions import CurrentEmbeddings, EmbeddingDocument
from onboard.domain.access import Scope
from onboard.domain.names import LATEST, MOST_LETTERS, Reference, require_alias

router = APIRouter(prefix="/v1", tags=["embeddings"], dependencies=[Depends(requires(Scope.READ))])
Ref = Annotated[str, Path(pattern=NAME, max_length=MOST_LETTERS, description="latest, vN or an alias.")]
_JSON: Final = "application/json"
_FILE: Final = file_answers("embedding.safetensors")
_READOUT: Final = file_answers("readout.safetensors")


async def shelf(request: Request) -> Shelf:
    """Return the shelf that was opened when the application started."""
    opened: Shelf = request.app.state.shelf
    return opened


OpenShelf = Annotated[Shelf, Depends(shelf)]


@router.get("/embeddings", response_model=CurrentEmbeddings, responses=UNCHANGED)
def list_embeddings(
    shelf: OpenShelf,
    ref: Annotated[str, Query(pattern=NAME, max_length=MOST_LETTERS, description="latest or another alias.")] = LATEST,
    files: Annotated[bool, Query(description="Include the bytes of each embedding.safetensors, in Base64.")] = False,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """List the version that an alias names in each task, with the numbers, under one ETag. Tasks without it are left
    out.
    """
    tag, make = shelf.everything(require_alias(ref), files)
    return answer(make, etag(tag), if_none_match, _JSON, REVALIDATE)


@router.get("/tasks/{task}/embeddings/{ref}.safetensors", responses=_FILE, response_class=Response)
def download_embedding(task: TaskName, ref: Ref, shelf: OpenShelf, if_none_match: IfNoneMatch = None) -> Response:
    """Download the file of a version; its SHA-256 is the ETag. Without an embedding it is weights.safetensors."""
    reference = Reference.parse(f"{task}@{ref}")
    current = shelf.current(reference)
    headers = {
        "Content-Location": f"/v1/tasks/{task}/embeddings/v{current.version}.safetensors",
        "Content-Disposition": f'attachment; filename="{task}-v{current.version}.safetensors"',
    }
    tag = etag(current.artifact)
    return answer(
        lambda: shelf.content(current.artifact), tag, if_none_match, SAFETENSORS, _caching(reference), headers
    )


@router.get("/tasks/{task}/embeddings/{ref}", response_model=EmbeddingDocument, responses=UNCHANGED)
def show_embedding(task: TaskName, ref: Ref, shelf: OpenShelf, if_none_match: IfNoneMatch = None) -> Response:
    """Return a version with everything that it is pinned to and, if it is an embedding, its numbers."""
    reference = Reference.parse(f"{task}@{ref}")
    current = shelf.current(reference)
    headers = {"Content-Location": f"/v1/tasks/{task}/embeddings/v{current.version}"}
    caching = REVALIDATE if current.provisional else _caching(reference)
    return answer(lambda: shelf.document(current), etag(current.tag), if_none_match, _JSON, caching, headers)


@router.get("/tasks/{task}/readouts/{ref}.safetensors", responses=_READOUT, response_class=Response)
def download_readout(task: TaskName, ref: Ref, shelf: OpenShelf, if_none_match: IfNoneMatch = None) -> Response:
    """Download the readout of a version with an embedding or weights; its SHA-256 is the ETag."""
    reference = Reference.parse(f"{task}@{ref}")
    number, artifact = shelf.readout(reference)
    headers = {"Content-Location": f"/v1/tasks/{task}/readouts/v{number}.safetensors"}
    caching = _caching(reference)
    return answer(lambda: shelf.content(artifact), etag(artifact), if_none_match, SAFETENSORS, caching, headers)


def _caching(wanted: Reference) -> str:
    return REVALIDATE if wanted.version is None else IMMUTABLE
