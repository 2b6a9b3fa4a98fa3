"""Style sheet and scripts of the pages, addressed by digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Header, Response
from fastapi import Path as InPath

from onboard import report
from onboard.api.etags import answer, etag
from onboard.errors import NotFoundError

FOLDER: Final = Path(__file__).parent / "static"
_REPORT: Final = Path(report.__file__).parent
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ANEW: Final = "public, no-cache"

# The pages extend the style of job reports.
_PARTS: Final = {
    "onboard.css": ("text/css; charset=utf-8", (_REPORT / "style.html", FOLDER / "pages.css")),
    "htmx.js": ("text/javascript; charset=utf-8", (FOLDER / "htmx.min.js",)),
    "reference.js": ("text/javascript; charset=utf-8", (FOLDER / "reference.js",)),
    "swagger-ui.js": ("text/javascript; charset=utf-8", (FOLDER / "swagger-ui.js",)),
    "swagger-ui.css": ("text/css; charset=utf-8", (FOLDER / "swagger-ui.css",)),
    "icon.svg": ("image/svg+xml", (FOLDER / "icon.svg",)),
    "pages.js": ("text/javascript; charset=utf-8", (FOLDER / "pages.js",)),
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as browsers get it."""

    content: bytes
    media_type: str
    digest: str


@router.get("/static/{name}")
def send_asset(
    name: Annotated[str, InPath(max_length=64)],
    digest: str | None = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Send a file; cached forever if it was addressed by digest."""
    asset = assets().get(name)
    if asset is None:
        raise NotFoundError("unknown-path", path=f"/static/{name}")
    caching = _FOR_EVER if digest == asset.digest else _ANEW
    return answer(lambda: asset.content, etag(asset.digest), if_none_match, asset.media_type, caching)


@router.get("/favicon.ico")
def send_icon(if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """Send the icon at its default address."""
    return send_asset("icon.svg", None, if_none_match)


def address(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{name}?digest={assets()[name].digest}"


@cache
def assets() -> dict[str, Asset]:
    """Return all files by name, read once."""
    return {name: _asset(media_type, paths) for name, (media_type, paths) in _PARTS.items()}


def _asset(media_type: str, paths: tuple[Path, ...]) -> Asset:
    content = b"\n".join(path.read_bytes() for path in paths)
    return Asset(content, media_type, hashlib.sha256(content).hexdigest()[:16])
