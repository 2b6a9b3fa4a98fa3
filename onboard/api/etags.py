"""Entity tags: what a client has already, and what it believes to change."""

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
_MAX_CHARACTERS: Final = 4000  # of a header; any longer one matches nothing
_TAG = re.compile(r'(?:W/)?("[^"]*")')

IfNoneMatch = Annotated[str | None, Header(description="ETag of what the client has: answered with 304 if it is that.")]
IfMatch = Annotated[str | None, Header(description="ETag of what the client saw: answered with 412 if it changed.")]

SAFETENSORS: Final = "application/octet-stream"
UNCHANGED: Final[dict[int | str, dict[str, Any]]] = {304: {"description": "The client has it already."}}


def file_answers(description: str) -> dict[int | str, dict[str, Any]]:
    """What the description of the door says of a route that sends a file."""
    content = {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": description, "content": content}, **UNCHANGED}


def etag(text: str) -> str:
    """The tag as headers write it."""
    return f'"{text}"'


def matches(header: str | None, tag: str) -> bool:
    """Whether the tag is among those of an If-None-Match or If-Match header; `*` is any."""
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
    """The content with its tag, or 304 when the client has it: then the content is not read.

    Args:
        content: gives the bytes, or a file that is sent piece by piece.
    """
    said = {"ETag": tag, "Cache-Control": caching, "Vary": "Authorization, Cookie", **(headers or {})}
    if matches(asked, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=said)
    body = content()
    if isinstance(body, Path):
        return FileResponse(body, headers=said, media_type=media_type)
    return Response(body, headers=said, media_type=media_type)
