"""Hypernetworks of this environment's service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.gateway import Document

if TYPE_CHECKING:
    from onboard.services import Services


class LocalHeads:
    """See `cli.gateway.Heads`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def hypernetworks(self, base: str | None) -> Document:
        """The line of a base."""
        from onboard.hypernetworks.line import list_hypernetworks

        return list_hypernetworks(self._services.database, self._named(base))

    def hypernetwork(self, version: int, base: str | None) -> Document:
        """One version."""
        from onboard.hypernetworks.line import show_hypernetwork

        return show_hypernetwork(self._services.database, self._named(base), version)

    def revert_hypernetwork(self, version: int, base: str | None) -> Document:
        """Make a version the head again."""
        from onboard.hypernetworks.line import revert_hypernetwork

        return revert_hypernetwork(self._services.database, self._named(base), version)

    def _named(self, base: str | None) -> str:
        """What the registry finds it by: the digest of the default base, which may have been registered by a folder."""
        from onboard.bases import find_base

        return base or find_base(self._services.settings.base).digest
