"""`onboard token`: tokens for the HTTP API; and `onboard audit`: who changed what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cli.columns import Columns, limits_text
from cli.connection import connected
from cli.output import AsJson, Document, emit, say

app = typer.Typer(help="Manage tokens for the HTTP API.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    scope: Annotated[
        list[str],
        typer.Option(help="Scope: submit, read, promote, ops or admin. Repeatable; no scope includes another."),
    ],
    name: Annotated[str | None, typer.Argument(help="Name of the token. Defaults to its scopes.")] = None,
    expires: Annotated[
        str, typer.Option(metavar="TIME", help="Lifetime, such as 30d, 12h, 2w or 45m; or never.")
    ] = "90d",
    max_jobs: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Limit of queued and running jobs; 0 allows none.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Limit of stored datasets and versions, such as 500MB or 1GB.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token. It is shown only once and not stored. Limits apply to all tokens with this name."""
    from onboard.domain.quota import read_size, require_limits

    size = None if max_bytes is None else read_size(max_bytes)
    require_limits({"max_jobs": max_jobs})
    with connected(register=False) as service:
        token = service.create_token(name, scope, expires, max_jobs=max_jobs, max_bytes=size)
    if not as_json:
        say(f"{_described(token)}. Save it now; it is not shown again:")
    emit(token, as_json, lambda: str(token["secret"]))


@app.command("list")
def list_tokens(
    include_ended: Annotated[bool, typer.Option("--all", help="Include expired and revoked tokens.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the valid tokens with their last use."""
    with connected(register=False) as service:
        tokens = service.tokens(include_ended)
    emit({"tokens": tokens}, as_json, lambda: _table(tokens))


@app.command()
def limit(
    owner: Annotated[str, typer.Argument(help="Name of the tokens; the limits apply to all of them together.")],
    max_jobs: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Limit of queued and running jobs; none lifts it.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Limit of stored bytes, such as 1GB; none lifts it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change the limits of all tokens with this name; an option that is left out changes nothing."""
    from onboard.domain.quota import read_limit

    texts = {"max_jobs": max_jobs, "max_bytes": max_bytes}
    limits = {field: read_limit(text, field) for field, text in texts.items() if text is not None}
    with connected(register=False) as service:
        use = service.set_quota(owner, limits)
    emit(use, as_json, lambda: f"{use['owner']}: {limits_text(use) or 'no limits'}")


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="The token's id, or its name if it is unique.")], as_json: AsJson = False
) -> None:
    """Revoke a token permanently, effective from the next request."""
    with connected(register=False) as service:
        revoked = service.revoke_token(token)
    emit(revoked, as_json, lambda: f"token {revoked['name']} ({revoked['id']}) is revoked")


@app.command()
def sessions(as_json: AsJson = False) -> None:
    """List the signed-in browsers, by token or by the link that `onboard serve` printed."""
    with connected(register=False) as service:
        open_sessions = service.sessions()
    emit({"sessions": open_sessions}, as_json, lambda: _sessions(open_sessions))


@app.command("sign-out")
def sign_out(
    session: Annotated[str, typer.Argument(help="Id of the session, from `onboard token sessions`.")],
    as_json: AsJson = False,
) -> None:
    """Sign a browser out, effective from the next request."""
    with connected(register=False) as service:
        ended_session = service.end_session(session)
    emit(ended_session, as_json, lambda: f"session {ended_session['id']} of {ended_session['name']} has ended")


def audit(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries; the newest are shown.")] = 50,
    before: Annotated[int | None, typer.Option(metavar="ID", min=1, help="Only entries before this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """List who changed what, newest first."""
    with connected(register=False) as service:
        page = service.changes(limit, before)
    if page["next"] is not None:
        say(f"There are older ones: onboard audit --before {page['next']}")
    emit(page, as_json, lambda: _log(page["changes"]))


def _described(token: Document) -> str:
    until = "never expires" if token["expires_at"] is None else f"expires {_time(token['expires_at'])} UTC"
    limits = limits_text(token)
    return f"token {token['name']} ({token['id']}): {', '.join(token['scopes'])}; {until}" + (
        f"; {limits}" if limits else ""
    )


def _table(tokens: Sequence[Document]) -> Columns:
    columns = Columns("id", "name", "scopes", "created", "expires", "last use", "limits", "")
    for token in tokens:
        columns.add(
            token["id"],
            token["name"],
            " ".join(token["scopes"]),
            _time(token["created_at"]),
            _time(token["expires_at"]),
            _time(token["last_used_at"]),
            limits_text(token),
            "" if token["revoked_at"] is None else f"revoked {_time(token['revoked_at'])}",
        )
    return columns


def _sessions(open_sessions: Sequence[Document]) -> Columns:
    columns = Columns("id", "name", "scopes", "signed in", "expires")
    for session in open_sessions:
        scopes = " ".join(session["scopes"])
        columns.add(session["id"], session["name"], scopes, _time(session["created_at"]), _time(session["expires_at"]))
    return columns


def _log(changes: Sequence[dict[str, Any]]) -> Columns:
    columns = Columns("id", "time", "who", "what", "of what", "facts", folded=["facts"])
    for change in changes:
        facts = " ".join(f"{name}={value}" for name, value in change["facts"].items())
        columns.add(str(change["id"]), _time(change["at"]), change["actor"], change["action"], change["subject"], facts)
    return columns


def _time(iso: str | None) -> str:
    """A document's time to the second, for people."""
    return "never" if iso is None else iso[:19].replace("T", " ")
