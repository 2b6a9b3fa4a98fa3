"""The map of tasks in two dimensions by similarity, with the nearest tasks of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.pages.frame import environment, page
from onboard.domain.access import Scope
from onboard.errors import OnboardError
from onboard.registry.services import Services
from onboard.report.map_html import map_parts
from onboard.storage.cache import Cache
from onboard.versions.task_map import map_tag, present_map

_KEPT: Final = 2  # maps, by the tag of all latest versions
_PATIENCE_SECONDS: Final = 2.0  # that a reader waits for a new layout before the previous one is shown
_READ: Final = [Depends(requires(Scope.READ))]

router = APIRouter(include_in_schema=False)


class Maps:
    """The map of the latest versions, computed again when one changes. Thread-safe."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._maps = Cache[str, dict[str, Any]](_KEPT)
        self._drawn = Cache[str, str](_KEPT)
        self._tag = ""  # of the newest map that was laid out
        self._layouts: dict[str, threading.Thread] = {}  # at work, by tag
        self._lock = threading.Lock()

    def document(self) -> dict[str, Any]:
        """Return the document of `onboard tasks map --json`. Raises DamagedError, StorageError."""
        return self._tagged()[1]

    def drawn(self, draw: Callable[[dict[str, Any]], str]) -> tuple[dict[str, Any], str, bool]:
        """Return what a page shows: after a change, the previous map until the new one is laid out.

        Returns:
            The document, the result of `draw`, cached for all users, and whether it is the current map.

        Raises:
            DamagedError, StorageError: as `document`.
        """
        present = map_tag(self._services)
        tag, document = present, self._soon(present)
        if document is None:
            tag, document = self._tag, self._maps.find(self._tag)
        if document is None:
            tag, document = self._tagged()
        shown = document
        return shown, self._drawn.get_alone(tag, lambda: draw(shown)), tag == present

    def _soon(self, tag: str) -> dict[str, Any] | None:
        """Return the map of this tag if it is cached, or laid out within `_PATIENCE_SECONDS`."""
        with self._lock:
            if tag not in self._maps and tag not in self._layouts:
                layout = threading.Thread(target=self._lay_out, args=(tag,), name="map of tasks", daemon=True)
                self._layouts[tag] = layout
                layout.start()
            running = self._layouts.get(tag)
        if running is not None:
            running.join(_PATIENCE_SECONDS)
        return self._maps.find(tag)

    def _lay_out(self, tag: str) -> None:
        try:
            with suppress(OnboardError):  # `document` raises it for readers that wait
                self._of(tag)
        finally:
            with self._lock:
                del self._layouts[tag]

    def _tagged(self) -> tuple[str, dict[str, Any]]:
        tag = map_tag(self._services)
        return tag, self._of(tag)

    def _of(self, tag: str) -> dict[str, Any]:
        document = self._maps.get_alone(tag, lambda: present_map(self._services, tag))
        self._tag = tag
        return document


@router.get("/map", dependencies=_READ)
@router.get("/map.json", dependencies=_READ)
def show_map(request: Request) -> Response:
    """Show which tasks are similar."""
    maps: Maps = request.app.state.maps
    if request.url.path.endswith(".json"):
        return page(request, "map_page.html", maps.document())
    root = request.app.state.settings.root_path
    document, part, present = maps.drawn(lambda drawn: _part(drawn, root))
    return page(request, "map_page.html", document, part=part, present=present)


def _part(document: dict[str, Any], root: str) -> str:
    if not document["tasks"]:
        return ""
    return environment().get_template("map_part.html").render(**map_parts(document), places=f"{root}/tasks/")
