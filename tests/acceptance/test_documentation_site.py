"""The documentation as a site: it builds without a warning, so that every link and anchor leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import leaves

from onboard.api.access import routes_of, scope_of
from onboard.api.app import create_app
from onboard.messages import MESSAGES
from onboard.settings import Settings
from reference import commands, errors, http_api, settings
from reference.redirects import MOVED, SECTIONS, address_of

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_site_and_what_lies_beside_docs_can_be_reached(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    # a folder's README is its first page
    html = {page.with_name("index.html") if page.name == "README.html" else page for page in pages}
    assert {page for page in html if not (site / page).is_file()} == set()
    assert (site / "repository" / "CHANGELOG.html").is_file()
    assert (site / "repository" / "recipes" / "mini.toml").is_file()


def test_addresses_of_earlier_releases_lead_to_where_their_pages_are(site: Path) -> None:
    for old, new in MOVED.items():
        html = (site / address_of(old)).read_text(encoding="utf-8")
        assert f'href="{address_of(new, str(Path(old).parent))}"' in html
    for page in (*MOVED.values(), *SECTIONS.values()):
        path, _, anchor = page.partition("#")
        html = (site / address_of(path)).read_text(encoding="utf-8")
        assert not anchor or f"id={anchor}" in html.replace('"', ""), page


def test_nothing_is_fetched_when_it_is_read(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?:[^\" >]*)", text) == []


def test_the_page_of_settings_is_what_the_code_says() -> None:
    assert settings.PAGE.read_text(encoding="utf-8") == settings.page(), "after a change: python -m reference.settings"


def test_the_references_name_everything_there_is() -> None:
    assert {f"ONBOARD_{name.upper()}" for name in Settings.model_fields} == set(
        re.findall(r"^\| `(ONBOARD_\w+)`", settings.page(), re.MULTILINE)
    )
    shown = commands.page()
    headings = re.findall(r"^## (onboard .*)$", shown, re.MULTILINE)
    assert sorted(headings) == sorted(" ".join(("onboard", *path)) for path in leaves())
    assert "--tune-hypernetwork" in shown


def test_the_reference_of_routes_names_every_one_that_is_no_page_and_its_scope(tmp_path: Path) -> None:
    shown = re.findall(r"^## ([A-Z]+ /\S*)\n.*?^Scope: (\w+)$", http_api.page(), re.MULTILINE | re.DOTALL)
    routes = [route for route in routes_of(create_app(Settings(home=tmp_path))) if route.include_in_schema]
    scopes = [
        (f"{method} {route.path_format}", scope.value if (scope := scope_of(route)) else "none")
        for route in routes
        for method in route.methods or ()
    ]
    assert sorted(shown) == sorted(scopes)


def test_errors_stand_with_their_remedies() -> None:
    shown = errors.page()
    assert "| `not_found` | `NotFoundError` | 3 | 404 | no |" in shown
    assert "onboard base list" in shown
    assert "| `unknown-base` | There is no base {base!r}. | List them with: onboard base list |" in shown
    assert len(re.findall(r"^\| `[a-z0-9]+(?:-[a-z0-9]+)+` \|", shown, re.MULTILINE)) >= len(MESSAGES)
