"""The map of tasks in two dimensions by similarity, with the nearest tasks of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.pages.frame import environment, page
from onboard.domain.access import Scope
from onboard.registry.services import Services
from onboard.report.map_html import map_parts
from onboard.storage.cache import Cache
from onboard.versions.task_map import map_tag, present_map

_KEPT: Final = 2  # maps, by the tag of all latest versions
_READ: Final = [Depends(requires(Scope.READ))]

router = APIRouter(include_in_schema=False)


class Maps:
    """The map of the latest versions, computed again when one changes. Thread-safe.

    Args:
        services: services of the tasks.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._maps = Cache[str, dict[str, Any]](_KEPT)
        self._drawn = Cache[str, str](_KEPT)

    def document(self) -> dict[str, Any]:
        """Return the document of `onboard tasks map --json`. Raises DamagedError, StorageError."""
        return self._tagged()[1]

    def drawn(self, draw: Callable[[dict[str, Any]], str]) -> tuple[dict[str, Any], str]:
        """Return the document, and the result of `draw`, cached for all users."""
        tag, document = self._tagged()
        return document, self._drawn.get_alone(tag, lambda: draw(document))

    def _tagged(self) -> tuple[str, dict[str, Any]]:
        tag = map_tag(self._services)
        return tag, self._maps.get_alone(tag, lambda: present_map(self._services, tag))


@router.get("/map", dependencies=_READ)
@router.get("/map.json", dependencies=_READ)
def show_map(request: Request) -> Response:
    """Show which tasks are similar."""
    maps: Maps = request.app.state.maps
    if request.url.path.endswith(".json"):
        return page(request, "map_page.html", maps.document())
    root = request.app.state.settings.root_path
    document, part = maps.drawn(lambda drawn: _part(drawn, root))
    return page(request, "map_page.html", document, part=part)


def _part(document: dict[str, Any], root: str) -> str:
    if not document["tasks"]:
        return ""
    return environment().get_template("map_part.html").render(**map_parts(document), places=f"{root}/tasks/")
