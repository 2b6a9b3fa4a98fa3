"""Common parts of all pages: rendering, and their `.json` twins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Depends, Form, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from onboard.api.pages.assets import address
from onboard.api.sign_in_page import MOST_LETTERS, own_place
from onboard.contract.document import Document
from onboard.domain.access import Identity, Scope
from onboard.domain.counting import size_text
from onboard.domain.methods import AUTO, OWN_START, WITHOUT_EMBEDDING
from onboard.domain.moment import seconds_text
from onboard.report.html import make_environment

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NOT_KNOWN: Final = "–"
_TEMPLATES: Final = Path(__file__).parent / "templates"
_AFTERWARDS: Final = 303  # See Other: redirect after a POST

# Address, name, key after `g`, and required scope of every page in the navigation.
NAVIGATION: Final = (
    ("/", "Overview", "o", Scope.READ),
    ("/jobs", "Jobs", "j", Scope.READ),
    ("/tasks", "Tasks", "t", Scope.READ),
    ("/map", "Map", "m", Scope.READ),
    ("/hypernetworks", "Hypernetworks", "h", Scope.READ),
    ("/priors", "Priors", "p", Scope.READ),
    ("/submit", "Submit", "s", Scope.SUBMIT),
    ("/tokens", "Tokens", "k", Scope.ADMIN),
    ("/audit", "Audit", "a", Scope.ADMIN),
    ("/webhooks", "Webhooks", "w", Scope.OPS),
    ("/docs", "API", "d", Scope.READ),
)


def page(
    request: Request, template: str, shown: Mapping[str, Any] | Document, /, status: int = HTTPStatus.OK, **more: Any
) -> Response:
    """Render a document as a page, or return it unchanged at an address that ends in .json.

    Args:
        more: data that only the page shows.
    """
    document = shown.to_json() if isinstance(shown, Document) else dict(shown)
    if request.url.path.endswith(".json"):
        return JSONResponse(document, status)
    return HTMLResponse(rendered(request, template, document=document, **more), status)


def rendered(request: Request, template: str, **given: Any) -> str:
    """Render a template with the navigation that the user may see; none before signing in."""
    identity: Identity | None = getattr(request.state, "identity", None)
    may = {scope: identity is not None and identity.may(scope) for scope in Scope}
    return (
        environment()
        .get_template(template)
        .render(
            identity=identity,
            may={scope.value: allowed for scope, allowed in may.items()},
            navigation=[(place, name, key) for place, name, key, scope in NAVIGATION if may[scope]],
            root=request.app.state.settings.root_path,
            path=request.url.path,
            query=f"?{request.url.query}" if request.url.query else "",
            **given,
        )
    )


async def came_from(back: Annotated[str, Form(max_length=MOST_LETTERS)] = "/") -> str:
    """Return the page of a form, from the form itself, as not every browser sends it."""
    return own_place(back)


CameFrom = Annotated[str, Depends(came_from)]


def to(place: str) -> Response:
    """Redirect to another page after a change. `onboard.api.root_path` adds a path prefix."""
    return RedirectResponse(place, _AFTERWARDS)


def place_of(path: str, given: Mapping[str, Any]) -> str:
    """Return an address with a query of all non-empty values; lists are repeated."""
    query = urlencode({name: value for name, value in given.items() if value}, doseq=True)
    return f"{path}?{query}" if query else path


@cache
def environment() -> Environment:
    """Return the templates of the pages and the charts of reports; values are escaped."""
    environment = make_environment(_TEMPLATES)
    environment.filters.update(moment=moment, duration=duration, count=count, size=size_text)
    environment.globals.update(
        asset=address, unknown=NOT_KNOWN, own_start=OWN_START, own=WITHOUT_EMBEDDING, auto_method=AUTO
    )
    return environment


def moment(iso: str | None) -> Markup:
    """Format a time (ISO 8601); scripts convert it to the reader's zone, and its title shows it exactly."""
    from markupsafe import Markup

    if iso is None:
        return Markup(NOT_KNOWN)
    shown = datetime.fromisoformat(iso).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso, shown)


def duration(seconds: float | None) -> str:
    """Return "3 min 20 s"; a dash if unknown."""
    return NOT_KNOWN if seconds is None else seconds_text(max(seconds, 0.0))


def count(number: float | None) -> str:
    """Return "12,345"; a dash if unknown."""
    return NOT_KNOWN if number is None else f"{number:,.0f}"
