"""Dependencies of routes: the opened services, page sizes, cursors, and waking workers."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from typing import Annotated, Any, Final

import anyio.from_thread
from fastapi import Depends, Query, Request

from onboard.domain.limits import MAX_PAGE
from onboard.errors import InputError
from onboard.registry.services import Services

_MAX_CURSOR_CHARACTERS: Final = 400
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


async def services(request: Request) -> Services:
    """Return the services that were opened when the application started."""
    opened: Services = request.app.state.services
    return opened


def client_left(request: Request) -> Callable[[], bool]:
    """Return a function that tells a threaded route whether the client has disconnected. Read the body before."""

    def left() -> bool:
        return anyio.from_thread.run(request.is_disconnected)

    return left


OpenServices = Annotated[Services, Depends(services)]
ClientLeft = Annotated[Callable[[], bool], Depends(client_left)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Maximum number of entries.")]
Cursor = Annotated[
    str | None,
    Query(max_length=_MAX_CURSOR_CHARACTERS, description="`next` of the previous page; omit it for the first page."),
]


def encode_cursor(listing: str, edge: Any) -> str:
    """Return an opaque cursor for the next page of a listing.

    Args:
        listing: name of the listing; cursors of other listings are rejected.
        edge: JSON-compatible.
    """
    text = json.dumps([listing, edge], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(listing: str, cursor: str | None) -> Any:
    """Return the edge of a cursor; None for the first page.

    Raises:
        InputError: the cursor is invalid for this listing.
    """
    if cursor is None:
        return None
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        name, edge = json.loads(text)
        _require_storable(edge)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise wrong_cursor() from error
    if name != listing:
        raise wrong_cursor()
    return edge


def decode_name(listing: str, cursor: str | None) -> str | None:
    """Return the edge of a listing by name or id. Raises InputError like `decode_cursor`."""
    edge = decode_cursor(listing, cursor)
    if edge is not None and not isinstance(edge, str):
        raise wrong_cursor()
    return edge


def _require_storable(edge: Any) -> None:
    """Raise ValueError for half a surrogate pair, which UTF-8 cannot store, or NUL, which some databases cannot."""
    written = json.dumps(edge, ensure_ascii=False)
    written.encode()
    if r"\u0000" in written:
        raise ValueError("a NUL")


def decode_number(cursor: str | None) -> int | None:
    """Return the edge of a listing by a public number, which is its cursor.

    Raises:
        InputError: the number is invalid.
    """
    if cursor is None:
        return None
    if not _NUMBER.fullmatch(cursor):
        raise wrong_cursor()
    return int(cursor)


def wrong_cursor() -> InputError:
    """Return the error for a cursor that is invalid, or no longer valid, for this listing."""
    return InputError("list-cursor-invalid", field="cursor")
