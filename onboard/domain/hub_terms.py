"""Which owners' datasets of the hub a service reads for remote callers, and for which it uses its own token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from onboard.errors import InputError, NotAllowedError

ANYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class HubTerms:
    """The settings for the hub. Names of owners are in lower case.

    Args:
        owners: owners whose datasets are read without a token; `*` means everybody.
        token_owners: owners whose datasets are read with the service's token, including private and gated ones.
    """

    owners: frozenset[str] = frozenset()
    token_owners: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, owners: str, token_owners: str) -> HubTerms:
        """Parse the settings, each a list separated by spaces. Raises InputError."""
        if ANYBODY in token_owners.split():
            raise InputError("hub-token-for-everybody")
        return cls(frozenset(owners.lower().split()), frozenset(token_owners.lower().split()))

    def lends_token(self, repository: str) -> bool:
        """Return whether a repository is read with the service's token.

        Raises:
            NotAllowedError: it may not be read at all.
        """
        owner = repository.lower().rpartition("/")[0]
        if owner and owner in self.token_owners:
            return True
        if ANYBODY in self.owners or (owner and owner in self.owners):
            return False
        named = owner or "OWNER"
        raise NotAllowedError("hub-owner-not-allowed", repository=repository, named=named)
