"""What may write into the log of changes: every route that is no look, and which of them are those of the pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from onboard.api.pages import ROUTERS


def changing(routes: Iterable[Any]) -> set[tuple[str, str]]:
    """Method and path of the routes that one does not get."""
    return {(method, route.path) for route in routes for method in route.methods or ("any",) if method != "GET"}


OF_PAGES: Final = changing(route for router in ROUTERS for route in router.routes)
