"""People sign in to the pages with a real OpenID provider, in a process of its own, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from fastapi.testclient import TestClient
from support.open_id_provider import add_person, open_id_provider

from onboard.api.app import create_app
from onboard.registry.services import Services
from onboard.settings import Settings

BACK: Final = "http://localhost/login/oidc/callback"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The URL of the provider."""
    with open_id_provider() as url:
        yield url


@pytest.fixture
def browser(issuer: str, tiny_services: Services) -> Iterator[TestClient]:
    terms = {
        "oidc_issuer": issuer, "oidc_client_id": "onboard", "oidc_client_secret": "secret", "oidc_redirect_url": BACK,
        "oidc_groups": "engineers=read,submit",
    }  # fmt: skip
    settings = Settings.model_validate({**tiny_services.settings.model_dump(), **terms})
    headers = {"Accept": "text/html"}
    with TestClient(create_app(settings), "http://localhost", headers=headers, follow_redirects=False) as client:
        yield client


def at_the_provider(browser: TestClient, sub: str, **form: str) -> str:
    """Begin, and sign in there; returns where the provider sends the browser."""
    begun = browser.get("/login/oidc", params={"place": "/jobs"})
    assert begun.status_code == 303
    answer = httpx.post(begun.headers["location"], data={"sub": sub, **form})
    assert answer.status_code == 302, answer.text
    place: str = answer.headers["location"]
    assert place.startswith(f"{BACK}?")
    return place


def test_somebody_signs_in_with_the_scopes_of_a_group(browser: TestClient, issuer: str) -> None:
    add_person(issuer, "ada", email="ada@example.org", email_verified=True, groups=["engineers"])
    answer = browser.get(at_the_provider(browser, "ada"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    me = browser.get("/v1/me").json()
    assert (me["name"], me["scopes"]) == ("ada@example.org", ["submit", "read"])
    assert browser.get("/jobs").status_code == 200


def test_a_code_signs_in_once(browser: TestClient, issuer: str) -> None:
    add_person(issuer, "ada", email="ada@example.org", email_verified=True, groups=["engineers"])
    place = at_the_provider(browser, "ada")
    cookie = browser.cookies["onboard_oidc"]
    assert browser.get(place).status_code == 303
    browser.cookies.clear()
    browser.cookies.set("onboard_oidc", cookie)
    answer = browser.get(place)
    assert (answer.status_code, "invalid_grant" in answer.text) == (401, True)


def test_somebody_without_such_a_group_gets_the_reason(browser: TestClient, issuer: str) -> None:
    add_person(issuer, "eve", email="eve@example.org", email_verified=True, groups=["guests"])
    answer = browser.get(at_the_provider(browser, "eve"))
    assert (answer.status_code, "eve@example.org" in answer.text) == (403, True)
    assert browser.get("/v1/me").status_code == 401


def test_somebody_who_declines_there_sees_the_form_again(browser: TestClient) -> None:
    """This provider then answers without a state, which makes its refusal anybody's."""
    answer = browser.get(at_the_provider(browser, "ada", action="deny"))
    assert (answer.status_code, "Sign in with" in answer.text) == (401, True)
