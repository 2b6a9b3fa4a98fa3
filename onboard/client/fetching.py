"""Fetch embeddings by reference, from the cache or the service, verified in both cases."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx

from onboard.client.answers import Embedding, read_embedding
from onboard.client.cache import EmbeddingCache, Note
from onboard.client.steps import Request, Steps
from onboard.domain.moment import seconds_text
from onboard.domain.names import Reference, require_alias
from onboard.domain.untrusted_json import parse_json
from onboard.errors import DamagedError, NotFoundError, UnavailableError

_MOST_SINGLE: Final = 8  # embeddings fetched individually; more are fetched in one request
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The targets of an alias in every task, and when the service reported them."""

    embeddings: Sequence[Mapping[str, Any]]
    stale: bool = False
    confirmed_at: float = 0.0


class Fetcher:
    """Fetches through a cache. Threads and processes may share the cache."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self._cache = cache

    def embedding(self, asked: Reference) -> Steps[Embedding]:
        """See `Onboard.embedding`."""
        embedding = yield from self._embedding(asked)
        self._cache.shrink()
        return embedding

    def embeddings(self, ref: str) -> Steps[dict[str, Embedding]]:
        """See `Onboard.embeddings`."""
        address = f"/v1/embeddings?ref={require_alias(ref)}"
        listing = yield from self._listing(address)
        missing = sum(self._cache.content(document["artifact"]) is None for document in listing.embeddings)
        if missing > _MOST_SINGLE and not listing.stale:
            listing = yield from self._with_files(f"{address}&files=true")
        embeddings = []
        for document in listing.embeddings:
            embedding = yield from self._listed(document)
            embeddings.append(replace(embedding, stale=listing.stale))
        self._cache.shrink()
        return {embedding.task: replace(embedding, confirmed_at=listing.confirmed_at) for embedding in embeddings}

    def _embedding(self, asked: Reference) -> Steps[Embedding]:
        address = _address(asked)
        note, cached = self._cached(address, asked)
        if cached is not None and asked.version is not None:
            return cached  # versions never change
        try:
            response = yield from self._ask(address, note)
        except UnavailableError as error:
            if cached is None:
                raise
            _tell_of_age(asked, cached, error)
            return replace(cached, stale=True)
        if response.status_code == httpx.codes.NOT_MODIFIED and note is not None and cached is not None:
            self._cache.confirm(address, note)
            return replace(cached, confirmed_at=time.time())
        return self._arrived(response, address, asked)

    def _cached(self, address: str, asked: Reference) -> tuple[Note | None, Embedding | None]:
        """Return the cached embedding if it is intact. A damaged one is ignored, so that it is fetched again."""
        note, content = self._kept(address)
        if note is None or content is None:
            return None, None
        try:
            if _promised(note.etag) == note.digest:
                return note, replace(read_embedding(content, asked), confirmed_at=note.at)
        except DamagedError:
            pass
        self._cache.forget(address)
        return None, None

    def _arrived(self, response: httpx.Response, address: str, asked: Reference) -> Embedding:
        content, etag = response.content, response.headers.get("etag", "")
        embedding = read_embedding(content, asked)
        promised = _promised(etag)
        if promised != embedding.file_digest:
            raise _damaged(str(asked), promised or "no digest", embedding.file_digest)
        for known_as in {address, _address(Reference.parse(embedding.reference))}:
            self._cache.keep(known_as, etag, content)
        return embedding

    def _listed(self, document: Mapping[str, Any]) -> Steps[Embedding]:
        """Return one embedding of a listing: from its file in the listing, the cache, or the service."""
        reference = Reference.parse(f"{document['task']}@v{document['version']}")
        content = document["content"] if "content" in document else self._cache.content(document["artifact"])
        embedding = (yield from self._embedding(reference)) if content is None else read_embedding(content, reference)
        for promised, came in (
            (document["embedding_digest"], embedding.digest),
            (document["artifact"], embedding.file_digest),
        ):
            if promised != came:
                raise _damaged(embedding.reference, promised, came)
        if "content" in document:
            self._cache.keep(_address(reference), f'"{embedding.file_digest}"', embedding.content)
        return embedding

    def _listing(self, address: str) -> Steps[_Listing]:
        note, cached = self._kept(address)
        try:
            response = yield from self._ask(address, note)
        except UnavailableError as error:
            if note is None or cached is None:
                raise
            _logger.warning("The list of embeddings is from the cache, %s old: %s", _age(note.at), error.message)
            return _Listing(_read_listing(cached), True, note.at)
        if response.status_code == httpx.codes.NOT_MODIFIED and note is not None and cached is not None:
            self._cache.confirm(address, note)
            return _Listing(_read_listing(cached), confirmed_at=time.time())
        documents = _read_listing(response.content)
        if response.headers.get("etag"):
            self._cache.keep(address, response.headers["etag"], response.content)
        return _Listing(documents, confirmed_at=time.time())

    def _with_files(self, address: str) -> Steps[_Listing]:
        """Fetch a listing with all files in one request. The files are cached individually, the listing is not."""
        documents = _read_listing((yield from self._ask(address, None)).content)
        return _Listing(
            [{**document, "content": _decoded(document.pop("file", None))} for document in documents],
            False,
            time.time(),
        )

    def _kept(self, address: str) -> tuple[Note | None, bytes | None]:
        note = self._cache.note(address)
        content = self._cache.content(note.digest) if note is not None else None
        return (None, None) if content is None else (note, content)

    def _ask(self, address: str, note: Note | None) -> Steps[httpx.Response]:
        headers = {} if note is None else {"If-None-Match": note.etag}
        try:
            response: httpx.Response = yield Request("GET", address, repeatable=True, headers=headers)
        except NotFoundError:
            self._cache.forget(address)
            raise
        return response


def _address(asked: Reference) -> str:
    return f"/v1/tasks/{asked.task}/embeddings/{asked.ref}.safetensors"


def _promised(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')


def _read_listing(content: bytes) -> list[dict[str, Any]]:
    try:
        documents = parse_json(content)["embeddings"]
        if all(document.keys() >= {"task", "version", "embedding_digest", "artifact"} for document in documents):
            return list(documents)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise UnavailableError("embeddings-list-unreadable")


def _decoded(file: Any) -> bytes:
    try:
        return base64.b64decode(file, validate=True)
    except (ValueError, TypeError) as error:
        raise UnavailableError("embeddings-without-files") from error


def _tell_of_age(asked: Reference, cached: Embedding, error: UnavailableError) -> None:
    _logger.warning(
        "%s is %s from the cache, %s old: %s", asked, cached.reference, _age(cached.confirmed_at), error.message
    )


def _age(at: float) -> str:
    return seconds_text(max(0.0, time.time() - at))


def _damaged(what: str, promised: str, came: str) -> DamagedError:
    return DamagedError("received-digest-differs", part=what, promised=promised, came=came)
