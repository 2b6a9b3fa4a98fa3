"""How people sign in by OpenID Connect: the provider, this service as its client, and what their groups may do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from onboard.domain.access import Scope, read_scopes
from onboard.errors import InputError

CALLBACK: Final = "/login/oidc/callback"  # where the provider sends browsers, below the root path
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_MOST_NAME: Final = 200  # characters of a person's name


@dataclass(frozen=True, slots=True)
class OpenIdTerms:
    """An OpenID provider, and the scopes of its groups.

    Args:
        issuer: URL of the provider, exactly as its tokens name it.
        redirect_url: URL of `/login/oidc/callback` as browsers see it.
        asks: OAuth scopes to request, separated by spaces.
        groups_claim: claim that lists a person's groups.
        groups: scopes by group.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_url: str
    asks: str
    groups_claim: str
    name_claim: str
    groups: Mapping[str, frozenset[Scope]]

    @property
    def host(self) -> str:
        """Host of the provider, for people."""
        return urlsplit(self.issuer).hostname or self.issuer

    def scopes_of(self, claims: Mapping[str, Any]) -> frozenset[Scope]:
        """Return the scopes of all groups of a person; none if no group has any."""
        claim = claims.get(self.groups_claim)
        groups = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        granted = (self.groups.get(group) for group in groups if isinstance(group, str))
        return frozenset().union(*filter(None, granted))

    def name_of(self, claims: Mapping[str, Any]) -> str:
        """Return a person's name. It contains an @, which names of tokens cannot, so it never means a token.

        An address that the provider has not verified may be another person's, so the subject stands in for it.
        """
        name = claims.get(self.name_claim)
        if self.name_claim == "email" and claims.get("email_verified") is not True:
            name = None
        if not (isinstance(name, str) and name.isprintable() and 0 < len(name.strip()) <= _MOST_NAME):
            name = str(claims["sub"])
        name = name.strip()[:_MOST_NAME]
        return name if "@" in name else f"{name}@{self.host}"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who signed in at the provider."""

    name: str
    scopes: frozenset[Scope]


def read_terms(
    settings: Mapping[str, str], *, root_path: str = "", asks: str, groups: str, groups_claim: str, name_claim: str
) -> OpenIdTerms | None:
    """Parse the settings; None if none is set.

    Args:
        settings: issuer, client_id, client_secret and redirect_url, by the name of the setting.
        root_path: path below which a proxy offers this service.
        asks: OAuth scopes.
        groups: `GROUP=SCOPE,SCOPE`, separated by semicolons.
        groups_claim: claim that lists a person's groups.

    Raises:
        InputError: one is missing, a URL is not https, the redirect URL is not this service's, or a group has no scope
            or an unknown one.
    """
    if not any(settings.values()):
        return None
    for name, value in settings.items():
        if not value:
            raise InputError("oidc-setting-missing", setting=name.upper())
    for name in ("oidc_issuer", "oidc_redirect_url"):
        _require_secure(name, settings[name])
    _require_callback(settings["oidc_redirect_url"], root_path)
    return OpenIdTerms(
        issuer=settings["oidc_issuer"], client_id=settings["oidc_client_id"],
        client_secret=settings["oidc_client_secret"],
        redirect_url=settings["oidc_redirect_url"], asks=asks, groups_claim=groups_claim, name_claim=name_claim,
        groups=dict(_groups(groups.split(";"))),
    )  # fmt: skip


def _require_secure(name: str, url: str) -> None:
    """Raise InputError unless nobody on the way can read a URL's traffic: https, or this machine."""
    split = urlsplit(url)
    if not split.hostname or not (split.scheme == "https" or (split.scheme == "http" and split.hostname in _LOOPBACK)):
        raise InputError("oidc-url-insecure", setting=name.upper(), url=url)


def _require_callback(url: str, root_path: str) -> None:
    """Raise InputError unless the provider sends browsers to where this service finishes the sign-in."""
    split, path = urlsplit(url), f"{root_path}{CALLBACK}"
    if split.path != path or split.query or split.fragment:
        raise InputError("oidc-redirect-url-wrong", url=url, path=path)


def _groups(parts: Iterable[str]) -> Iterable[tuple[str, frozenset[Scope]]]:
    has_group = False
    for part in filter(None, map(str.strip, parts)):
        group, mark, scopes = part.rpartition("=")  # names of groups in a directory contain the sign, too
        if not mark or not group.strip() or not scopes.strip():
            raise InputError("oidc-group-without-scopes", group=part)
        has_group = True
        yield group.strip(), read_scopes([scopes])
    if not has_group:
        raise InputError("oidc-setting-missing", setting="OIDC_GROUPS")
