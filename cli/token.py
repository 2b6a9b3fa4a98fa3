"""`onboard token`: tokens for the HTTP API; and `onboard audit`: the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cli.columns import Columns
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
    as_json: AsJson = False,
) -> None:
    """Create a token. It is shown only once and not stored."""
    with connected(register=False) as service:
        document = service.create_token(name, scope, expires)
    if not as_json:
        say(f"{_described(document)}. Keep it now, it is not shown again:")
    emit(document, as_json, lambda: str(document["secret"]))


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
def revoke(
    token: Annotated[str, typer.Argument(help="The token's id, or its name if it is unique.")], as_json: AsJson = False
) -> None:
    """Revoke a token permanently, effective from the next request."""
    with connected(register=False) as service:
        ended = service.revoke_token(token)
    emit(ended, as_json, lambda: f"token {ended['name']} ({ended['id']}) is revoked")


@app.command()
def sessions(as_json: AsJson = False) -> None:
    """List the signed-in browsers, by token or by the link that `onboard serve` printed."""
    with connected(register=False) as service:
        opened = service.sessions()
    emit({"sessions": opened}, as_json, lambda: _sessions(opened))


@app.command("sign-out")
def sign_out(
    session: Annotated[str, typer.Argument(help="Id of the session, from `onboard token sessions`.")],
    as_json: AsJson = False,
) -> None:
    """Sign a browser out, effective from the next request."""
    with connected(register=False) as service:
        ended = service.end_session(session)
    emit(ended, as_json, lambda: f"session {ended['id']} of {ended['name']} has ended")


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
    return f"token {token['name']} ({token['id']}): {', '.join(token['scopes'])}; {until}"


def _table(tokens: Sequence[Document]) -> Columns:
    columns = Columns("id", "name", "scopes", "created", "expires", "last use", "")
    for token in tokens:
        columns.add(
            token["id"],
            token["name"],
            " ".join(token["scopes"]),
            _time(token["created_at"]),
            _time(token["expires_at"]),
            _time(token["last_used_at"]),
            "" if token["revoked_at"] is None else f"revoked {_time(token['revoked_at'])}",
        )
    return columns


def _sessions(opened: Sequence[Document]) -> Columns:
    columns = Columns("id", "name", "scopes", "signed in", "expires")
    for session in opened:
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
    """A document's time for people, to the second."""
    return "never" if iso is None else iso[:19].replace("T", " ")
