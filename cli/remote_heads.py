"""Hypernetworks of the service at ONBOARD_API_URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.gateway import Document
from onboard.errors import NotFoundError

if TYPE_CHECKING:
    from onboard.client import Onboard


class RemoteHeads:
    """See `cli.gateway.Heads`."""

    def __init__(self, client: Onboard) -> None:
        self._client = client

    def hypernetworks(self, base: str | None) -> Document:
        """The line of a base."""
        return self._client.get("/v1/hypernetworks", base=self._digest(base))

    def hypernetwork(self, version: int, base: str | None) -> Document:
        """One version."""
        return self._client.get(f"/v1/hypernetworks/{version}", base=self._digest(base))

    def revert_hypernetwork(self, version: int, base: str | None) -> Document:
        """Make a version the head again."""
        digest = self._digest(base)
        return self._client.send("POST", f"/v1/hypernetworks/{version}/revert{f'?base={digest}' if digest else ''}")

    def _digest(self, base: str | None) -> str | None:
        """A base's digest by its name; a service's default base needs none. Raises NotFoundError."""
        if base is None or base.startswith("sha256:"):
            return base
        found = self._client.get("/v1/bases", name=base)["bases"]
        if not found:
            raise NotFoundError(f"The service has no base {base!r}.", "onboard base list", base=base)
        digest: str = found[0]["digest"]
        return digest
