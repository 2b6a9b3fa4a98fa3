"""The documentation as a site: it builds without a warning, so that every link and anchor leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onboard.settings import Settings
from reference import commands, errors, http, settings
from reference.errors import messages

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


def test_nothing_is_fetched_when_it_is_read(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?(https?:[^\" >]*)", text) == []


def test_the_references_name_everything_there_is() -> None:
    assert {f"ONBOARD_{name.upper()}" for name in Settings.model_fields} == set(
        re.findall(r"^\| `(ONBOARD_\w+)`", settings.page(), re.MULTILINE)
    )
    shown = commands.page()
    assert "## onboard jobs watch\n" in shown
    assert "--tune-hypernetwork" in shown
    routes = http.page()
    assert "## POST /v1/jobs\n" in routes
    assert "Scope: submit\n" in routes


def test_errors_stand_with_their_remedies() -> None:
    shown = errors.page()
    assert "| `not_found` | `NotFoundError` | 3 | 404 | no |" in shown
    assert "onboard base list" in shown
    assert len(set(messages())) > 200
