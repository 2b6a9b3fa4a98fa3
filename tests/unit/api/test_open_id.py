"""Sign-in by OpenID Connect: whoever the provider signs in, and nobody else, with what the groups may do."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from fastapi import FastAPI
from fastapi.testclient import TestClient
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from support.refusals import refused
from support.registry_samples import add_job

from onboard.api.app import create_app
from onboard.domain.open_id import OpenIdTerms
from onboard.operations.access import create_token, quota_of, set_quota
from onboard.operations.open_id import Begun, OpenIdProvider
from onboard.registry.audit import entries
from onboard.registry.services import Services
from onboard.settings import Settings

ISSUER: Final = "https://id.example.org/realm"
CLIENT: Final = "onboard"
SECRET: Final = "s:e/c"
BACK: Final = "https://onboard.example.org/login/oidc/callback"
GROUPS: Final = "engineers=read,submit; cn=ops,dc=example=ops"
HTML: Final = {"Accept": "text/html"}
NOW: Final = 1_800_000_000.0
RSA: Final = RSAKey.generate_key(2048, {"kid": "one"})


@dataclass
class Provider:
    """A provider as far as a client sees it."""

    keys: list[Any] = field(default_factory=lambda: [RSA])
    signs: Any = field(default_factory=lambda: RSA)
    algorithm: str = "RS256"
    claims: dict[str, Any] = field(default_factory=dict)
    description: dict[str, Any] = field(default_factory=dict)
    nonce: str = ""
    challenge: str = ""
    now: float = NOW
    asked: list[str] = field(default_factory=list)
    broken: str = ""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/realm")
        self.asked.append(path)
        if self.broken == path:
            return httpx.Response(502, text="<html>")
        if path == "/.well-known/openid-configuration":
            places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
            document = {"issuer": ISSUER, **{name: f"{ISSUER}/{place}" for name, place in places.items()}}
            return httpx.Response(200, json={**document, **self.description})
        if path == "/keys":
            return httpx.Response(200, json=KeySet(self.keys).as_dict(private=False))
        assert path == "/token"
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        if httpx.BasicAuth(CLIENT, "s%3Ae%2Fc")._auth_header != request.headers.get("authorization"):
            return httpx.Response(401, json={"error": "invalid_client"})
        if form["code"] != "good" or create_s256_code_challenge(form["code_verifier"]) != self.challenge:
            return httpx.Response(400, json={"error": "invalid_grant"})
        assert form["redirect_uri"] == BACK
        return httpx.Response(200, json={"access_token": "a", "token_type": "Bearer", "id_token": self.token()})

    def token(self) -> str:
        claims = {
            "iss": ISSUER, "aud": CLIENT, "sub": "u1", "nonce": self.nonce, "iat": int(self.now),
            "exp": int(self.now) + 300, "email": "ada@example.org", "email_verified": True, "groups": ["engineers"],
            **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, self.signs, algorithms=[self.algorithm])


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def settings(tiny_services: Services) -> Settings:
    terms = {
        "oidc_issuer": ISSUER, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "oidc_redirect_url": BACK,
        "oidc_groups": GROUPS,
    }  # fmt: skip
    return Settings.model_validate({**tiny_services.settings.model_dump(), **terms})


@pytest.fixture
def open_id(provider: Provider, settings: Settings) -> OpenIdProvider:
    terms = settings.open_id
    assert terms is not None
    return OpenIdProvider(terms, httpx.MockTransport(provider), lambda: NOW)


@pytest.fixture
def page_app(settings: Settings, open_id: OpenIdProvider) -> FastAPI:
    app = create_app(settings)
    app.state.open_id = open_id
    return app


@pytest.fixture
def browser(page_app: FastAPI) -> Iterator[TestClient]:
    with TestClient(page_app, "http://localhost", headers=HTML, follow_redirects=False) as client:
        yield client


def begin(browser: TestClient, provider: Provider, place: str = "/tasks") -> str:
    """Go to the provider; returns the state."""
    answer = browser.get("/login/oidc", params={"place": place})
    assert answer.status_code == 303
    sent = urlsplit(answer.headers["location"])
    asked = {name: values[0] for name, values in parse_qs(sent.query).items()}
    assert f"{sent.scheme}://{sent.netloc}{sent.path}" == f"{ISSUER}/authorize"
    assert (asked["response_type"], asked["client_id"], asked["redirect_uri"]) == ("code", CLIENT, BACK)
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid email profile", "S256")
    provider.nonce, provider.challenge = asked["nonce"], asked["code_challenge"]
    return asked["state"]


def come_back(browser: TestClient, state: str, **answered: str) -> httpx.Response:
    return browser.get("/login/oidc/callback", params={"state": state, "code": "good", **answered})


def test_whoever_signs_in_at_the_provider_gets_the_scopes_of_the_groups(
    browser: TestClient, provider: Provider, tiny_services: Services
) -> None:
    assert 'href="/login/oidc">Sign in with id.example.org' in browser.get("/login").text
    assert 'href="/login/oidc?place=%2Ftasks"' in browser.get("/tasks").text
    provider.claims = {"groups": ["engineers", "others", 7, "cn=ops,dc=example"]}
    answer = come_back(browser, begin(browser, provider))
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks")
    assert "onboard_oidc" not in browser.cookies
    me = browser.get("/v1/me").json()
    assert (me["name"], me["scopes"]) == ("ada@example.org", ["submit", "read", "ops"])
    assert browser.get("/tasks").status_code == 200
    assert browser.get("/tokens").status_code == 403
    with tiny_services.database.read() as session:
        (line,) = entries(session, 1)
    assert (line.action, line.actor, line.subject) == ("session.open", "ada@example.org", "ada@example.org")


def test_the_session_is_listed_and_ended_like_any_other(
    browser: TestClient, provider: Provider, tiny_services: Services, page_app: FastAPI
) -> None:
    come_back(browser, begin(browser, provider))
    admin = {"Authorization": f"Bearer {create_token(tiny_services.database, 'boss', ['admin'])[1]}"}
    with TestClient(page_app, "http://localhost", headers=admin) as boss:
        (session,) = boss.get("/v1/sessions").json()["sessions"]
        assert (session["name"], session["token"], session["scopes"]) == ("ada@example.org", None, ["submit", "read"])
        assert boss.delete(f"/v1/sessions/{session['id']}").status_code == 200
        assert boss.get("/v1/audit").json()["changes"][0]["subject"] == "ada@example.org"
    assert browser.get("/v1/me").status_code == 401


def test_a_change_by_another_site_is_refused_in_such_a_session(browser: TestClient, provider: Provider) -> None:
    come_back(browser, begin(browser, provider))
    assert browser.post("/logout", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert browser.post("/logout", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
    assert browser.get("/v1/me").status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(NOW) - 61},
        {"exp": None},
        {"iat": int(NOW) + 61},
        {"iat": None},
        {"nbf": int(NOW) + 61},
        {"aud": "another"},
        {"aud": ["another", CLIENT]},  # without azp
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"aud": None},
        {"aud": []},
        {"iss": "https://evil.example.org"},
        {"iss": f"{ISSUER}/"},
        {"iss": None},
        {"nonce": "of-another-sign-in"},
        {"nonce": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"exp": "tomorrow"},
    ],
    ids=lambda claims: json.dumps(claims)[:40],
)
def test_an_id_token_that_is_expired_early_for_another_client_or_sign_in_is_refused(
    browser: TestClient, provider: Provider, claims: dict[str, Any]
) -> None:
    state = begin(browser, provider)
    provider.claims = claims
    answer = come_back(browser, state)
    assert answer.status_code == 401
    assert "is not valid here" in answer.text
    assert "onboard_session" not in browser.cookies


@pytest.mark.parametrize("skew", [-59, 59])
def test_clocks_may_differ_by_a_minute(browser: TestClient, provider: Provider, skew: int) -> None:
    state = begin(browser, provider)
    provider.claims = {"iat": int(NOW) + skew, "exp": int(NOW) - 59}
    assert come_back(browser, state).status_code == 303


def test_a_token_for_several_clients_names_the_one_that_it_was_made_for(
    browser: TestClient, provider: Provider
) -> None:
    state = begin(browser, provider)
    provider.claims = {"aud": ["another", CLIENT], "azp": CLIENT}
    assert come_back(browser, state).status_code == 303


def _with_secret(secret: bytes, body: str) -> str:
    """A token that is signed by HMAC."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').decode().rstrip("=")
    signature = hmac.digest(secret, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def test_forged_signatures_are_refused(provider: Provider, open_id: OpenIdProvider) -> None:
    provider.nonce = "n"
    good = provider.token()
    assert open_id.verified(good, "n")["sub"] == "u1"
    head, body, signature = good.split(".")
    others = [
        Provider(signs=RSAKey.generate_key(2048, {"kid": "one"}), nonce="n").token(),
        _with_secret(RSA.as_pem(private=False), body),  # what everybody knows, as a secret
        Provider(signs=ECKey.generate_key("P-256", {"kid": "one"}), algorithm="ES256", nonce="n").token(),
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"eyJhbGciOiJub25lIn0.{body}.",  # {"alg":"none"}
        f"{head}.e30.{signature}",
        "", "x", "a.b.c", good * 2,
    ]  # fmt: skip
    for forged in others:
        with refused("oidc-token-invalid"):
            open_id.verified(forged, "n")


def test_a_new_key_of_the_provider_is_fetched_and_forged_tokens_do_not_fetch_each_time(
    provider: Provider, open_id: OpenIdProvider
) -> None:
    provider.nonce = "n"
    open_id.verified(provider.token(), "n")
    new = RSAKey.generate_key(2048, {"kid": "one"})
    provider.signs = new
    for _ in range(3):
        with refused("oidc-token-invalid"):
            open_id.verified(provider.token(), "n")
    assert provider.asked.count("/keys") == 1
    provider.keys, later = [new], OpenIdProvider(open_id.terms, httpx.MockTransport(provider), lambda: NOW)
    later._keys = (NOW - 31, KeySet([RSA]).as_dict(private=False))
    assert later.verified(provider.token(), "n")["sub"] == "u1"


def test_nobody_finishes_what_another_browser_began(browser: TestClient, provider: Provider, page_app: FastAPI) -> None:
    state = begin(browser, provider)
    with TestClient(page_app, "http://localhost", headers=HTML, follow_redirects=False) as other:
        assert come_back(other, state).status_code == 401
        begin(other, provider)
        assert come_back(other, state).status_code == 401
    assert come_back(browser, "").status_code == 401
    assert "/token" not in provider.asked


def test_a_sign_in_that_took_too_long_or_a_made_up_cookie_is_refused(open_id: OpenIdProvider) -> None:
    for at in (NOW - 601, NOW + 5):
        with refused("oidc-state-wrong"):
            open_id.finish(Begun("s", "n", "v", "/", at), {"state": "s", "code": "good"})
    for cookie in ("", "x", "e30", "W10", "bnVsbA", "eyJzdGF0ZSI6ICJzIn0", "=" * 50, "é"):
        assert Begun.unpacked(cookie) is None
    begun = Begun("s", "n", "v", "/x", NOW)
    assert Begun.unpacked(begun.packed()) == begun


@pytest.mark.parametrize(
    ("answered", "said"),
    [({"error": "access_denied", "code": ""}, "access_denied"), ({"code": "used"}, "invalid_grant"),
     ({"code": ""}, "no code"), ({"error": "<script>"}, "&lt;script&gt;")],
)  # fmt: skip
def test_what_the_provider_refuses_is_shown_with_the_form(
    browser: TestClient, provider: Provider, answered: dict[str, str], said: str
) -> None:
    answer = come_back(browser, begin(browser, provider), **answered)
    assert (answer.status_code, said in answer.text, "<form" in answer.text) == (401, True, True)
    assert "<script>" not in answer.text


@pytest.mark.parametrize("groups", [None, [], ["strangers"], "strangers", {"engineers": True}, [["engineers"]], 3])
def test_whoever_is_in_no_group_with_scopes_gets_no_session(
    browser: TestClient, provider: Provider, groups: Any
) -> None:
    state = begin(browser, provider)
    provider.claims = {"groups": groups}
    answer = come_back(browser, state)
    assert (answer.status_code, "ada@example.org" in answer.text) == (403, True)
    assert "onboard_session" not in browser.cookies


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email_verified": False}, "u1@id.example.org"),
        ({"email_verified": None}, "u1@id.example.org"),
        ({"email_verified": "true"}, "u1@id.example.org"),
        ({"email": "a\u202eb@example.org"}, "u1@id.example.org"),
        ({"email": "x" * 300}, "u1@id.example.org"),
        ({"email": None, "sub": "local"}, "local@id.example.org"),
    ],
)
def test_a_name_that_may_be_anothers_is_not_used(terms: OpenIdTerms, claims: dict[str, Any], name: str) -> None:
    known = {"sub": "u1", "email": "ada@example.org", "email_verified": True}
    assert terms.name_of({**known, **claims}) == name
    assert terms.name_of(known) == "ada@example.org"


@pytest.fixture
def terms(settings: Settings) -> OpenIdTerms:
    found = settings.open_id
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("description", "broken"),
    [
        ({}, "/.well-known/openid-configuration"),
        ({"issuer": "https://other.example.org"}, ""),
        ({"jwks_uri": None}, ""),
    ],
)
def test_a_provider_that_cannot_be_used_leaves_the_sign_in_by_token(
    browser: TestClient, provider: Provider, description: dict[str, Any], broken: str
) -> None:
    provider.description, provider.broken = description, broken
    answer = browser.get("/login/oidc")
    assert answer.status_code == 503
    assert browser.get("/login").status_code == 200


def test_keys_or_codes_that_cannot_be_had_are_the_providers_fault(browser: TestClient, provider: Provider) -> None:
    for place in ("/keys", "/token"):
        state = begin(browser, provider)
        provider.broken = place
        assert come_back(browser, state).status_code == 503
    assert "onboard_session" not in browser.cookies


def test_a_place_elsewhere_is_not_gone_to(browser: TestClient, provider: Provider) -> None:
    assert come_back(browser, begin(browser, provider, "//evil.example.org")).headers["location"] == "/"


def test_without_a_provider_there_is_no_such_page(tiny_services: Services) -> None:
    app = create_app(tiny_services.settings)
    with TestClient(app, "http://localhost", headers=HTML) as client:
        assert "oidc" not in client.get("/login").text
        assert client.get("/login/oidc").status_code == client.get("/login/oidc/callback").status_code == 404


def test_a_head_does_not_use_up_the_code(browser: TestClient, provider: Provider) -> None:
    state = begin(browser, provider)
    head = browser.head("/login/oidc/callback", params={"state": state, "code": "good"})
    assert (head.status_code, "/token" in provider.asked) == (200, False)
    assert come_back(browser, state).status_code == 303


def test_a_signed_in_person_is_an_owner_with_a_quota(
    browser: TestClient, provider: Provider, tiny_services: Services
) -> None:
    database = tiny_services.database
    with refused("unknown-owner"):
        set_quota(database, "ada@example.org", {"max_jobs": 1})
    come_back(browser, begin(browser, provider))
    set_quota(database, "ada@example.org", {"max_jobs": 1})
    add_job(database, owner="ada@example.org")
    with refused("quota-jobs"):
        add_job(database, owner="ada@example.org")
    found = quota_of(database, "ada@example.org")
    assert found is not None
    assert browser.get("/v1/me").json()["quota"]["jobs_left"] == 0


GOOD: Final = {
    "oidc_issuer": ISSUER, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "oidc_redirect_url": BACK,
    "oidc_groups": GROUPS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "type_"),
    [
        *(({name: ""}, "oidc-setting-missing") for name in GOOD),
        ({"oidc_issuer": "http://id.example.org"}, "oidc-url-insecure"),
        ({"oidc_issuer": "id.example.org"}, "oidc-url-insecure"),
        ({"oidc_redirect_url": "http://onboard.example.org/login/oidc/callback"}, "oidc-url-insecure"),
        ({"oidc_redirect_url": "https://onboard.example.org/onboard/login/oidc/callback"}, "oidc-redirect-url-wrong"),
        ({"oidc_redirect_url": f"{BACK}/"}, "oidc-redirect-url-wrong"),
        ({"oidc_redirect_url": f"{BACK}?next=1"}, "oidc-redirect-url-wrong"),
        ({"root_path": "/onboard"}, "oidc-redirect-url-wrong"),
        ({"oidc_groups": "engineers"}, "oidc-group-without-scopes"),
        ({"oidc_groups": "engineers="}, "oidc-group-without-scopes"),
        ({"oidc_groups": "=read"}, "oidc-group-without-scopes"),
        ({"oidc_groups": "engineers=everything"}, "unknown-scope"),
        ({"oidc_groups": " ; "}, "oidc-setting-missing"),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_the_start(changes: dict[str, str], type_: str) -> None:
    with refused(type_):
        Settings.model_validate({**GOOD, **changes})


def test_the_redirect_url_contains_the_root_path() -> None:
    below = {"oidc_redirect_url": "https://example.org/onboard/login/oidc/callback", "root_path": "/onboard"}
    assert Settings.model_validate({**GOOD, **below}).open_id is not None


def test_a_cookie_that_would_be_too_long_leads_to_the_first_page() -> None:
    short, long = (Begun("s" * 43, "n" * 43, "v" * 43, place, 1.0) for place in ("/jobs?task=mood", "/" + "ä" * 1999))
    found = [Begun.unpacked(begun.packed()) for begun in (short, long)]
    assert found == [short, replace(long, place="/")]
    assert len(long.packed()) < 500


def test_the_secret_is_neither_shown_nor_given_to_workers(settings: Settings, terms: OpenIdTerms) -> None:
    assert SECRET not in repr(settings) + repr(terms) + json.dumps(settings.for_worker())
    assert Settings.model_validate({"oidc_issuer": ""}).open_id is None
