"""Documents of a remote service, by their paths."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from onboard.client.connection import Connection, document_of
from onboard.client.document import Document
from onboard.domain.limits import MAX_PAGE


class Asking:
    """Whoever asks a service.

    Args:
        connection: to it.
    """

    in_commands = False  # whether errors are for people at a command line, and speak of its options

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, path: str, **params: Any) -> Document:
        """The JSON document at a path of the service. Parameters that are None are omitted."""
        given = {name: value for name, value in params.items() if value is not None}
        return document_of(self._connection.request("GET", path, repeatable=True, build=lambda: {"params": given}))

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        timeout_seconds: float | None = None,
    ) -> Document:
        """The JSON response to a change, or an empty document."""
        response = self._connection.request(
            method, path, repeatable=repeatable, timeout_seconds=timeout_seconds,
            build=lambda: {} if body is None else {"json": body},
        )  # fmt: skip
        return document_of(response)

    def text(self, path: str) -> str:
        """The text at a path of the service."""
        return self._connection.request("GET", path, repeatable=True, headers={"Accept": "*/*"}).text

    def pages(self, path: str, entries: str, most: int = sys.maxsize, **params: Any) -> Iterator[Document]:
        """The pages of a list, until its end or a maximum.

        Args:
            entries: what a page's entries stand under.
            most: at most so many entries in all.
            params: of each request; `cursor` says where the first page begins.
        """
        while most > 0:
            page = self.get(path, **params, limit=min(most, MAX_PAGE))
            yield page
            most -= len(page.parts(entries))
            params["cursor"] = page.read_or_none("next", str)
            if params["cursor"] is None:
                return
