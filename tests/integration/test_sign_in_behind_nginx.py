"""People sign in with a real OpenID provider through a real nginx: with TLS, at the top and below a path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from support import chromium, nginx
from support.browsing import app_without_base
from support.open_id_provider import add_person, open_id_provider
from support.real_door import answering
from support.real_services import free_port
from support.registry_samples import register_sample_base, sample_version

from bench.harness.browser import chromium as launched
from onboard.registry.services import Services
from onboard.settings import Settings

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = [pytest.mark.timeout(900)]
ROOT: Final = "/at/onboard"
HTML: Final = {"Accept": "text/html"}


@dataclass(frozen=True)
class Place:
    """Where nginx offers the service, over HTTP and HTTPS, and the path of its cookies."""

    plain: str
    url: str
    root: str

    @property
    def back(self) -> str:
        return f"{self.url}/login/oidc/callback"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for which the name is this machine."""
    chromium.require()
    with launched(f"--host-resolver-rules=MAP {nginx.NAME} 127.0.0.1") as opened:
        yield opened


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The URL of a provider that knows Ada."""
    with open_id_provider() as url:
        add_person(url, "ada", email="ada@example.org", email_verified=True, groups=["engineers"])
        yield url


@pytest.fixture
def place(
    request: pytest.FixtureRequest,
    issuer: str,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Place]:
    """The service, with the settings that the documentation names, behind nginx."""
    nginx.require()
    how = getattr(request, "param", "top")
    root, upstream = "" if how == "top" else ROOT, free_port()
    monkeypatch.setattr("onboard.api.routes.hypernetworks._default_digest", lambda _: sample_version().base_digest)
    register_sample_base(services.database)
    with ExitStack() as stack:
        plain, tls = stack.enter_context(nginx.proxied(tmp_path, upstream, root, cuts=how == "path cut off"))
        offered = Place(plain, tls, root)
        terms = {
            "oidc_issuer": issuer, "oidc_client_id": "onboard", "oidc_client_secret": "secret",
            "oidc_redirect_url": offered.back, "oidc_groups": "engineers=read,submit", "allowed_hosts": nginx.NAME,
            "root_path": root, "trusted_proxies": "127.0.0.1",
        }  # fmt: skip
        settings = Settings.model_validate({**services.settings.model_dump(), **terms})
        app = app_without_base(services, monkeypatch, settings)
        proxies = {"proxy_headers": True, "forwarded_allow_ips": settings.trusted_proxies.split()}
        stack.enter_context(answering(app, port=upstream, start_seconds=120, **proxies))
        yield offered


@pytest.mark.parametrize("place", ["top", "path", "path cut off"], indirect=True)
def test_a_browser_signs_in_at_the_provider_and_out_again(browser: Any, place: Place) -> None:
    expect = playwright.expect
    expect.set_options(timeout=60_000)
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{place.url}/jobs?state=failed")  # it asks for a session first
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    assert parse_qs(urlsplit(page.url).query)["redirect_uri"] == [place.back]
    (begun,) = context.cookies()
    assert (begun["name"], begun["secure"], begun["httpOnly"]) == ("onboard_oidc", True, True)
    page.fill("input[name=sub]", "ada")
    page.get_by_role("button", name=re.compile("authorize", re.IGNORECASE)).first.click()
    expect(page.locator("nav [aria-current=page]")).to_have_text("Jobs")
    assert page.url == f"{place.url}/jobs?state=failed"  # the page that was requested
    (cookie,) = context.cookies()
    facts = (cookie["name"], cookie["secure"], cookie["httpOnly"], cookie["sameSite"], cookie["path"])
    assert facts == ("onboard_session", True, True, "Lax", place.root or "/")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("#token")).to_be_visible()
    assert page.url == f"{place.url}/login"
    assert context.cookies() == []
    page.goto(f"{place.url}/jobs")
    expect(page.locator("#token")).to_be_visible()  # the session has ended on the server, too
    context.close()


def visitor(place: Place) -> httpx.Client:
    """Somebody without a browser, who reaches nginx by its address."""
    address = urlsplit(place.url)._replace(netloc=f"127.0.0.1:{urlsplit(place.url).port}").geturl()
    return httpx.Client(base_url=address, headers={**HTML, "Host": urlsplit(place.url).netloc}, verify=False)


@pytest.mark.parametrize("letter", ["x", "ä"])
def test_the_address_of_a_requested_page_may_be_long(place: Place, letter: str) -> None:
    """The header of a long cookie does not fit into the 4 KiB that nginx reserves for the head of an answer."""
    wanted = quote(f"/jobs?task={letter * 1900}", safe="/?=")[:5000]
    with visitor(place) as client:
        answer = client.get(f"/login/oidc?place={wanted}")
        assert answer.status_code == 303, answer.text
        assert len(answer.headers["set-cookie"]) < 2200


def test_over_plain_http_cookies_are_not_secure_and_the_provider_leads_to_https(place: Place) -> None:
    plain = urlsplit(place.plain)
    with httpx.Client(headers={**HTML, "Host": plain.netloc}) as client:
        answer = client.get(f"http://127.0.0.1:{plain.port}/login/oidc")
    assert "secure" not in answer.headers["set-cookie"].lower()
    assert parse_qs(urlsplit(answer.headers["location"]).query)["redirect_uri"] == [place.back]
