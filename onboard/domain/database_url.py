"""The URL of the registry's database, of what the settings say."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote

NO_PREPARED_STATEMENTS: Final = "onboard_unprepared"  # the parameter by which the URL passes that setting on


def embedded_url(home: Path) -> str:
    """SQLite in the home folder, whatever letters the name of that has: a ? or % in it means itself."""
    return f"sqlite:///{quote(str(home / 'onboard.db'))}"


def server_url(url: str, *, prepared: bool) -> str:
    """The URL as SQLAlchemy takes it. postgresql:// means psycopg 3; without `prepared` it prepares no statements."""
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            url = "postgresql+psycopg://" + url.removeprefix(prefix)
    if prepared or not url.startswith("postgresql"):
        return url
    return f"{url}{'&' if '?' in url.rpartition('@')[2] else '?'}{NO_PREPARED_STATEMENTS}=true"
