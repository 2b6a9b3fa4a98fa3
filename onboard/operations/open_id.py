"""Sign in by OpenID Connect: the code flow with PKCE, state and nonce, and the checks of the ID token.

Authlib holds the claims against OpenID Connect Core 1.0, section 3.1.3.7; joserfc verifies the signature.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

import httpx

from onboard.domain.open_id import Person
from onboard.errors import NotAllowedError, SignInError, UnavailableError

if TYPE_CHECKING:
    from onboard.domain.open_id import OpenIdTerms

LEEWAY_SECONDS: Final = 60  # by which clocks may differ
BEGUN_SECONDS: Final = 600.0  # that signing in at the provider may take
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")
_MOST_COOKIE: Final = 2000  # characters; nginx takes 4 KiB for all headers of an answer, browsers for one cookie
_TIMEOUT_SECONDS: Final = 10.0
_KNOWN_SECONDS: Final = 3600.0  # that the provider's description and keys are kept
_AGAIN_SECONDS: Final = 30.0  # between two looks for a new key
_DISCOVERY: Final = "/.well-known/openid-configuration"
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class Begun:
    """What the browser that began to sign in brings back, so that nobody else can finish it.

    Args:
        verifier: of PKCE.
        place: the page that was requested.
        at: epoch seconds.
    """

    state: str
    nonce: str
    verifier: str
    place: str
    at: float

    def packed(self) -> str:
        """Return it as the value of a cookie; with the first page, if the requested one makes it too long."""
        value = base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")
        return value if len(value) <= _MOST_COOKIE else replace(self, place="/").packed()

    @classmethod
    def unpacked(cls, cookie: str) -> Begun | None:
        """Return what a cookie says; None if it was not made by `packed`."""
        try:
            facts = json.loads(base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4)))
            begun = cls(**{name: str(facts[name]) for name in ("state", "nonce", "verifier", "place")}, at=facts["at"])
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error):
            return None
        return begun if isinstance(begun.at, float) and begun.state and begun.nonce else None


class OpenIdProvider:
    """The provider of this deployment. Thread-safe.

    Args:
        terms: the provider and this client of it.
        transport: how it is reached; None is the network.
        clock: epoch seconds.
    """

    def __init__(
        self,
        terms: OpenIdTerms,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.terms = terms
        self._clock = clock
        self._transport = transport
        self._guard = threading.Lock()
        self._described: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, dict[str, Any]] | None = None

    def begin(self, place: str) -> tuple[str, Begun]:
        """Return the address at the provider where a browser signs in, and what the browser must bring back.

        Raises:
            UnavailableError: the provider cannot be reached, or describes itself wrongly.
        """
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        address: str = prepare_grant_uri(
            self._description()["authorization_endpoint"], self.terms.client_id, "code",
            redirect_uri=self.terms.redirect_url, scope=self.terms.asks, state=state, nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier), code_challenge_method="S256",
        )  # fmt: skip
        return address, Begun(state, nonce, verifier, place, self._clock())

    def finish(self, begun: Begun | None, answered: Mapping[str, str]) -> Person:
        """Exchange the code of a provider's answer and return who signed in.

        Args:
            begun: what the browser brought back.

        Raises:
            SignInError: the answer belongs to another browser or came too late, the provider refused, or its ID token
                is expired, forged, for another client or for another sign-in.
            NotAllowedError: the person is in no group with scopes.
            UnavailableError: the provider cannot be reached, or answers wrongly.
        """
        late = begun is None or not 0 <= self._clock() - begun.at <= BEGUN_SECONDS
        if begun is None or late or not hmac.compare_digest(begun.state.encode(), answered.get("state", "").encode()):
            raise SignInError("oidc-state-wrong")
        if "error" in answered or not answered.get("code"):
            raise SignInError("oidc-refused", provider=self.terms.host, reason=_shown(answered.get("error", "no code")))
        claims = self.verified(self._exchanged(answered["code"], begun), begun.nonce)
        name, scopes = self.terms.name_of(claims), self.terms.scopes_of(claims)
        if not scopes:
            raise NotAllowedError("oidc-without-scopes", name=name, claim=self.terms.groups_claim)
        return Person(name, scopes)

    def verified(self, token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token that the provider signed for this client and this sign-in.

        Raises:
            SignInError: it is not, or it has expired or is not valid yet.
            UnavailableError: the provider's keys cannot be read.
        """
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        decoded, trouble = None, ""
        for anew in (False, True):  # the provider may have new keys
            try:
                keys = KeySet.import_key_set(self._key_set(anew=anew))  # type: ignore[arg-type]  # JSON
                decoded = jwt.decode(token, keys, algorithms=list(ALGORITHMS))
                break
            except (JoseError, ValueError, KeyError, TypeError) as error:
                trouble = f"its signature or form is wrong ({type(error).__name__})"
        if decoded is None:
            raise SignInError("oidc-token-invalid", provider=self.terms.host, reason=trouble)
        options: Any = {
            "iss": {"essential": True, "value": self.terms.issuer},
            "aud": {"essential": True, "value": self.terms.client_id},
        }
        params = {"nonce": nonce, "client_id": self.terms.client_id}
        claims = CodeIDToken(decoded.claims, decoded.header, options, params)
        try:
            claims.validate(now=int(self._clock()), leeway=LEEWAY_SECONDS)
        except (JoseError, ValueError, TypeError) as error:
            reason = f"{getattr(error, 'error', type(error).__name__)}: {getattr(error, 'description', '') or error}"
            raise SignInError("oidc-token-invalid", provider=self.terms.host, reason=_shown(reason)) from error
        if not isinstance(claims.get("sub"), str) or not claims["sub"]:
            raise SignInError("oidc-token-invalid", provider=self.terms.host, reason="it names no subject")
        return dict(claims)

    def _exchanged(self, code: str, begun: Begun) -> str:
        """The ID token for a code."""
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.terms.redirect_url,
            "code_verifier": begun.verifier,
        }  # fmt: skip
        described = self._description()
        methods = described.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        secret = self.terms.client_id, self.terms.client_secret
        auth = httpx.BasicAuth(*map(quote_plus, secret)) if "client_secret_basic" in methods else None
        if auth is None:
            form |= {"client_id": secret[0], "client_secret": secret[1]}
        answer = self._asked("POST", described["token_endpoint"], data=form, auth=auth)
        if answer.status_code in (400, 401, 403):  # the code was used, is too old, or another client's
            reason = _shown(str(_object(answer).get("error", answer.status_code)))
            raise SignInError("oidc-refused", provider=self.terms.host, reason=reason)
        token = self._document(answer).get("id_token")
        if not isinstance(token, str):
            raise self._wrong("its answer has no ID token")
        return token

    def _description(self) -> dict[str, Any]:
        with self._guard:
            if self._described is None or self._clock() - self._described[0] > _KNOWN_SECONDS:
                document = self._document(self._asked("GET", self.terms.issuer.rstrip("/") + _DISCOVERY))
                if document.get("issuer") != self.terms.issuer:
                    raise self._wrong(f"it calls itself {_shown(str(document.get('issuer')))}")
                missing = [name for name in _ENDPOINTS if not isinstance(document.get(name), str)]
                if missing:
                    raise self._wrong(f"its description lacks {missing[0]}")
                self._described = self._clock(), document
            return self._described[1]

    def _key_set(self, *, anew: bool) -> dict[str, Any]:
        place = self._description()["jwks_uri"]
        with self._guard:
            kept = _AGAIN_SECONDS if anew else _KNOWN_SECONDS
            if self._keys is None or self._clock() - self._keys[0] > kept:
                self._keys = self._clock(), self._document(self._asked("GET", place))
            return self._keys[1]

    def _asked(self, method: str, url: str, **more: Any) -> httpx.Response:
        try:
            with httpx.Client(transport=self._transport, timeout=_TIMEOUT_SECONDS) as client:
                return client.request(method, url, headers={"Accept": "application/json"}, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            raise UnavailableError("oidc-unreachable", provider=self.terms.host, reason=reason) from error

    def _document(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.is_success and (document := _object(answer)):
            return document
        raise self._wrong(f"it answers {answer.status_code} at {answer.request.url.path}")

    def _wrong(self, reason: str) -> UnavailableError:
        return UnavailableError("oidc-provider-wrong", provider=self.terms.host, reason=reason)


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _shown(text: str) -> str:
    """The beginning of what somebody else said, in plain characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:100]).rstrip(". ")
