"""Scopes of routes: every route except the open ones depends on `requires(Scope.READ)` or another scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext, iter_route_contexts
from fastapi.security import APIKeyCookie, HTTPBearer

from onboard.domain.access import Identity, Scope
from onboard.domain.open_id import CALLBACK
from onboard.errors import ScopeError, SignInError

OIDC: Final = "/login/oidc"  # where people who sign in by OpenID Connect begin
# these, and everything below /static, need no token
OPEN: Final = ("/healthz", "/readyz", "/login", OIDC, CALLBACK, "/favicon.ico", "/static")
ANYBODY_SIGNED_IN: Final = ("/", "/logout", "/v1/me")  # any token or session is sufficient
SESSION_COOKIE: Final = "onboard_session"

# Only for OpenAPI: the middleware of `guarding` has already read and verified them.
_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="A token created by `onboard token create`.")
_COOKIE = APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session", description="A signed-in browser.")


def is_open(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in OPEN or path.startswith("/static/")


async def signed_in(
    request: Request,
    _bearer: Annotated[Any, Security(_BEARER)] = None,
    _cookie: Annotated[Any, Security(_COOKIE)] = None,
) -> Identity:
    """Dependency of routes that accept any token; returns the identity. Raises SignInError."""
    identity: Identity | None = getattr(request.state, "identity", None)
    if identity is None:
        raise SignInError("token-missing")
    return identity


def requires(scope: Scope) -> Callable[..., Awaitable[Identity]]:
    """Return a dependency that requires the scope and returns the identity.

    Use: `identity: Annotated[Identity, Depends(requires(Scope.READ))]`, or in `dependencies=[…]` of the route.

    Raises:
        SignInError: (401) nobody is signed in, or the token is unknown, expired or revoked.
        ScopeError: (403) the token lacks the scope.
    """

    async def identified(identity: Annotated[Identity, Depends(signed_in)]) -> Identity:
        if not identity.may(scope):
            raise ScopeError("token-lacks-scope", token=identity.name, scope=str(scope))
        return identity

    identified.__dict__["scope"] = scope
    return identified


def scope_of(route: RouteContext) -> Scope | None:
    """Return the scope that a route requires; None if it requires none."""
    waiting: list[Dependant] = [dependant] if (dependant := getattr(route, "dependant", None)) else []
    while waiting:
        dependant = waiting.pop()
        scope = getattr(dependant.call, "scope", None)
        if isinstance(scope, Scope):
            return scope
        waiting.extend(dependant.dependencies)
    return None


def routes_of(app: FastAPI) -> Iterator[RouteContext]:
    """Yield every route of the application, including those of its routers."""
    return iter_route_contexts(app.routes)


def require_guarded(app: FastAPI) -> None:
    """Refuse an application that has a route without a scope, so that none is forgotten.

    Raises:
        RuntimeError: with the routes that are neither open nor require a scope.
    """
    unscoped = {route.path or "" for route in routes_of(app) if scope_of(route) is None}
    bare = sorted(path for path in unscoped if not is_open(path) and path not in ANYBODY_SIGNED_IN)
    if bare:
        raise RuntimeError(f"These routes require no scope: {', '.join(bare)}")
