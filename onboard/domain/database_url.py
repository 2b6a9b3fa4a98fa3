"""The URL of the registry's database, from the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

NO_PREPARED_STATEMENTS: Final = "onboard_unprepared"  # parameter of the URL that carries this setting


def embedded_url(home: Path) -> str:
    """Return the URL of SQLite in the home folder, with special characters such as ? and % quoted."""
    return f"sqlite:///{quote(str(home / 'onboard.db'))}"


def server_url(url: str, *, prepared: bool) -> str:
    """Convert the URL for SQLAlchemy: postgresql:// means psycopg 3; without `prepared`, statements are not
    prepared.
    """
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            url = "postgresql+psycopg://" + url.removeprefix(prefix)
    if prepared or not url.startswith("postgresql"):
        return url
    return f"{url}{'&' if '?' in url.rpartition('@')[2] else '?'}{NO_PREPARED_STATEMENTS}=true"
