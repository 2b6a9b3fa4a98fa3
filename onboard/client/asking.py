"""Documents of a remote service by path."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from onboard.client.connection import PATIENCE_SECONDS, Way, document_of, pause_after
from onboard.client.json_object import JsonObject
from onboard.client.problems import in_commands
from onboard.client.steps import Request, Steps, Stream, operation
from onboard.client.uploads import Upload
from onboard.domain.limits import MAX_PAGE
from onboard.errors import UnavailableError


def get(path: str, **params: Any) -> Steps[JsonObject]:
    """Return the JSON document at a path of the service. Parameters that are None are omitted."""
    given = {name: value for name, value in params.items() if value is not None}
    return document_of((yield Request("GET", path, repeatable=True, build=lambda: {"params": given})))


def send(
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    repeatable: bool = False,
    timeout_seconds: float | None = None,
) -> Steps[JsonObject]:
    """Return the JSON response to a change, or an empty document."""
    build = dict if body is None else lambda: {"json": body}
    return document_of((yield Request(method, path, repeatable, timeout_seconds=timeout_seconds, build=build)))


def text(path: str) -> Steps[str]:
    """Return the text at a path of the service."""
    response = yield Request("GET", path, repeatable=True, headers={"Accept": "*/*"})
    return str(response.text)


def pages(path: str, entries: str, most: int = sys.maxsize, **params: Any) -> Steps[list[JsonObject]]:
    """Return the pages of a list; see `Asking.pages`."""
    found: list[JsonObject] = []
    while most > 0:
        page = yield from get(path, **params, limit=min(most, MAX_PAGE))
        found.append(page)
        most -= len(page.parts(entries))
        params["cursor"] = page.read_or_none("next", str)
        if params["cursor"] is None:
            break
    return found


def upload(path: str, uploaded: Upload, headers: Mapping[str, str] | None = None) -> Steps[JsonObject]:
    """Return the JSON response to an upload."""
    with uploaded.opened() as build:
        response = yield Request("POST", path, True, headers or {}, PATIENCE_SECONDS, build=build)
    document = document_of(response)
    if "warnings" not in document:
        return document
    return JsonObject.of({**document, "warnings": in_commands(document.parts("warnings"))}, document.place)


def download(path: str, target: IO[bytes], attempts: int) -> Steps[str]:
    """Download a path to an empty file. Returns `sha256:…` over the bytes."""
    for attempt in range(1, attempts + 1):
        target.seek(0)
        target.truncate()
        digest = hashlib.sha256()

        def hear(part: bytes, digest: Any = digest) -> None:
            digest.update(part)
            target.write(part)

        try:
            yield Stream(path, {"Accept": "*/*"}, hear)
            break
        except UnavailableError as error:
            if attempt == attempts:
                raise
            yield pause_after(attempt, error)
    return f"sha256:{digest.hexdigest()}"


class Asking:
    """The generic requests of a client."""

    in_commands = False  # whether errors mention command-line options

    if TYPE_CHECKING:

        @property
        def _connection(self) -> Way: ...

    @operation
    def get(self, /, path: str, **params: Any) -> Steps[JsonObject]:
        """Return the JSON document at a path of the service. Parameters that are None are omitted."""
        return get(path, **params)

    @operation
    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        timeout_seconds: float | None = None,
    ) -> Steps[JsonObject]:
        """Return the JSON response to a change, or an empty document."""
        return send(method, path, body, repeatable=repeatable, timeout_seconds=timeout_seconds)

    @operation
    def text(self, path: str) -> Steps[str]:
        """Return the text at a path of the service."""
        return text(path)

    @operation
    def pages(self, /, path: str, entries: str, most: int = sys.maxsize, **params: Any) -> Steps[Iterator[JsonObject]]:
        """Return the pages of a list, until its end or a maximum.

        Args:
            entries: the key of a page's entries.
            most: maximum number of entries in total.
            params: of each request; `cursor` is the start of the first page.
        """
        return iter((yield from pages(path, entries, most, **params)))
