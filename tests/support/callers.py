"""Who calls the door."""

from __future__ import annotations

from onboard.operations.access import create_token
from onboard.registry.database import Database


def bearer(database: Database, *scopes: str, name: str = "test") -> dict[str, str]:
    """The headers of a caller with a new token of these scopes; `name` is the token's."""
    return {"Authorization": f"Bearer {create_token(database, name, list(scopes))[1]}"}
