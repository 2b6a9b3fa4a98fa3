"""Check a PostgreSQL URL before the driver fails on it with an unclear message.

No message quotes a part of the URL that may contain a password.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import URL

from onboard.domain.database_url import NO_PREPARED_STATEMENTS
from onboard.errors import InputError

_POOLER: Final = ("prepare_threshold", "prepared_statements", "statement_cache_size", "prepared_statement_cache_size")
_HOSTS: Final = ("host", "port")  # several hosts are given in the query


def require_usable(url: URL) -> None:
    """Raise InputError if a part of the URL is misplaced, or a parameter is unknown to libpq."""
    places = (url.host or "", url.database or "", *url.query)
    if any("@" in place for place in places) or "/" in (url.host or ""):
        raise InputError("database-url-password")
    for name in url.query:
        if name not in (NO_PREPARED_STATEMENTS, *_HOSTS) and name not in _known():
            raise _unknown(name)


def _unknown(name: str) -> InputError:
    if name in _POOLER or "pool" in name.lower() or "bouncer" in name.lower():
        return InputError("database-url-parameter-of-pooler", parameter=name)
    return InputError("database-url-parameter", parameter=name)


def _known() -> frozenset[str]:
    """Return the parameters of the installed libpq."""
    from psycopg import pq

    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())
