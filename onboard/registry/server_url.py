"""Whether a URL of PostgreSQL means what whoever wrote it meant: said before the driver stumbles over it.

No message quotes a part of the URL where a password may stand.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import URL

from onboard.domain.database_url import NO_PREPARED_STATEMENTS
from onboard.errors import InputError

_POOLER: Final = ("prepare_threshold", "prepared_statements", "statement_cache_size", "prepared_statement_cache_size")
_HOSTS: Final = ("host", "port")  # several hosts stand in the query


def require_usable(url: URL) -> None:
    """Raise InputError where a part of the URL is not where it belongs, or a parameter is not one of libpq."""
    places = (url.host or "", url.database or "", *url.query)
    if any("@" in place for place in places) or "/" in (url.host or ""):
        raise InputError(
            "ONBOARD_DATABASE_URL has an @ or / after its password, which is cut off there.",
            "Write such letters of user and password as %XX: @ is %40, / is %2F, ? is %3F, # is %23, % is %25.",
        )
    for name in url.query:
        if name not in (NO_PREPARED_STATEMENTS, *_HOSTS) and name not in _known():
            raise _unknown(name)


def _unknown(name: str) -> InputError:
    remedy = "Take it away; PostgreSQL's documentation of libpq lists the parameters (sslmode, sslrootcert, …)."
    if name in _POOLER or "pool" in name.lower() or "bouncer" in name.lower():
        remedy = "Take it away. Behind a transaction pooler set ONBOARD_DATABASE_PREPARED_STATEMENTS=false."
    return InputError(
        f"ONBOARD_DATABASE_URL has the parameter {name!r}, which the driver of PostgreSQL does not know.",
        remedy,
        parameter=name,
    )


def _known() -> frozenset[str]:
    """The parameters of this libpq."""
    from psycopg import pq

    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())
