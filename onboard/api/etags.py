"""Entity tags for caching and conditional changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Header
from starlette.responses import FileResponse, Response

IMMUTABLE: Final = "private, max-age=31536000, immutable"
REVALIDATE: Final = "private, no-cache"
_MAX_CHARACTERS: Final = 4000  # of a header; longer ones match nothing
_TAG = re.compile(r'(?:W/)?("[^"]*")')

IfNoneMatch = Annotated[
    str | None, Header(description="ETag of the client's copy; the response is 304 if it is current.")
]
IfMatch = Annotated[
    str | None, Header(description="ETag that the client has seen; the response is 412 if it has changed.")
]

SAFETENSORS: Final = "application/octet-stream"
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "The client's copy is current."}}


def file_answers(description: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a route that sends a file."""
    content = {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": description, "content": content}, **UNCHANGED}


def etag(text: str) -> str:
    """Return the tag as written in headers."""
    return f'"{text}"'


def matches(header: str | None, tag: str) -> bool:
    """Return whether an If-None-Match or If-Match header contains the tag; `*` matches any."""
    if header is None or len(header) > _MAX_CHARACTERS:
        return False
    return header.strip() == "*" or tag in _TAG.findall(header)


def answer(
    content: Callable[[], bytes | Path],
    tag: str,
    asked: str | None,
    media_type: str,
    caching: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return the content with its tag, or a 304, without reading the content, if the client has it.

    Args:
        content: returns the bytes, or a file to stream.
    """
    said = {"ETag": tag, "Cache-Control": caching, "Vary": "Authorization, Cookie", **(headers or {})}
    if matches(asked, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=said)
    body = content()
    if isinstance(body, Path):
        return FileResponse(body, headers=said, media_type=media_type)
    return Response(body, headers=said, media_type=media_type)
