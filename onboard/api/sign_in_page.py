"""The sign-in form, the only page that needs no session."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from string import Template
from typing import Final
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from onboard.api.access import OIDC
from onboard.settings import Settings

MOST_LETTERS: Final = 2000  # of an address

_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in - Onboard</title>
<link rel="icon" type="image/svg+xml" href="$root/static/icon.svg">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 15vh auto; padding: 0 1rem; color: #1b1b1b }
input, button, .provider { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin-top: .5rem }
.provider { display: block; text-align: center; border: 1px solid; color: inherit; text-decoration: none }
[role=alert] { color: #a00000 }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e6e6e6 } [role=alert] { color: #ff8a80 } }
</style>
</head>
<body>
<main>
<h1>Onboard</h1>
$trouble
<form method="post" action="$root/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="place" value="$place">
<button>Sign in</button>
</form>
$provider
<p>On the machine of the service, <code>onboard token create NAME --scope read</code> makes a token, and every start of
<code>onboard serve</code> on it prints a link that signs you in.</p>
</main>
</body>
</html>
""")


def sign_in_page(
    status: int = 200, trouble: str = "", place: str = "/", root: str = "", provider: str = ""
) -> HTMLResponse:
    """Return the sign-in form.

    Args:
        trouble: the previous error, in one sentence.
        place: the requested page.
        root: the path prefix that browsers see (ONBOARD_ROOT_PATH).
        provider: host of the OpenID provider; empty without one.
    """
    where = own_place(place)
    query = "" if where == "/" else f"?{urlencode({'place': where})}"
    link = f'<a class="provider" href="{escape(root)}{OIDC}{escape(query)}">Sign in with {escape(provider)}</a>'
    said = f'<p role="alert">{escape(trouble)}</p>' if trouble else ""
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return HTMLResponse(
        _PAGE.substitute(
            trouble=said, place=escape(where), root=escape(root), provider=link if provider else ""
        ), status, headers,
    )  # fmt: skip


def provider_of(settings: Settings) -> str:
    """Return the host of the OpenID provider that people sign in with; empty without one."""
    terms = settings.open_id
    return terms.host if terms else ""


def own_place(given: str) -> str:
    """Return the address from a form if it is on this service, else the first page."""
    ours = given.startswith("/") and not given.startswith("//") and given.isprintable() and "\\" not in given
    return given if ours and len(given) <= MOST_LETTERS else "/"
