"""`onboard token …`, `onboard audit`, and what `onboard doctor` tells of tokens, as people type them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from support.command_line import CommandLine, Said
from support.refusals import require

from onboard.errors import SignInError
from onboard.operations import access
from onboard.registry.access_tables import TokenRow
from onboard.registry.clock import database_now
from onboard.registry.services import open_services
from onboard.settings import Settings


@pytest.fixture
def say(tmp_path: Path, _sqlite_template: Path, command_line: CommandLine) -> CommandLine:
    """Commands in a home with an empty database."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "onboard.db").write_bytes(_sqlite_template.read_bytes())
    return command_line


def document(said: Said) -> Any:
    assert said.code == 0, said
    return said.document


def test_a_token_is_made_listed_and_revoked(say: CommandLine) -> None:
    made = document(say("token", "create", "--scope", "read", "--expires", "30d", "--json"))
    assert made["secret"].startswith("onb_")
    assert (made["name"], made["scopes"]) == ("read", ["read"])
    (listed,) = document(say("token", "list", "--json"))["tokens"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    assert document(say("token", "revoke", made["id"], "--json"))["revoked_at"] is not None
    assert document(say("token", "list", "--json")) == {"tokens": []}
    assert len(document(say("token", "list", "--all", "--json"))["tokens"]) == 1


def test_signed_in_browsers_are_listed_and_signed_out(say: CommandLine) -> None:
    with closing(open_services(Settings())) as services:
        cookie = access.sign_in_by_code(services.database, access.offer_code(services.database))
        (session,) = document(say("token", "sessions", "--json"))["sessions"]
        assert session["name"] == "local"
        assert session["id"] in say("token", "sessions")[1]
        assert document(say("token", "sign-out", session["id"], "--json")) == session
        with pytest.raises(SignInError):
            access.identify_session(services.database, cookie)
    code, _, err = say("token", "sign-out", session["id"])
    assert code == 3
    assert "onboard token sessions" in err


def test_people_get_the_secret_alone_on_standard_output_and_never_in_the_list(say: CommandLine) -> None:
    code, out, err = say("token", "create", "shop", "--scope", "read", "--scope", "submit", "--expires", "never")
    secret = out.strip()
    assert (code, secret.startswith("onb_"), " " in secret) == (0, True, False)
    assert "submit, read; never expires" in err
    assert "not shown again" in err
    assert secret not in err
    _, listed, _ = say("token", "list")
    assert "shop" in listed
    assert secret not in listed
    assert secret.removeprefix("onb_")[:8] not in listed
    assert say("token", "revoke", "shop")[1].startswith("token shop (")
    assert "revoked" in say("token", "list", "--all")[1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ("token", "create", "shop")),
        (2, ("token", "create", "shop", "--scope", "all")),
        (2, ("token", "create", "Shop", "--scope", "read")),
        (2, ("token", "create", "shop", "--scope", "read", "--expires", "soon")),
        (3, ("token", "revoke", "nobody")),
        (2, ("audit", "--limit", "0")),
    ],
)
def test_what_is_wrong_has_its_exit_code(say: CommandLine, code: int, words: tuple[str, ...]) -> None:
    assert say(*words)[0] == code


def test_the_log_of_changes_is_read_from_the_newest_on(say: CommandLine) -> None:
    for name in ("one", "two", "three"):
        say("token", "create", name, "--scope", "read")
    page = document(say("audit", "--limit", "2", "--json"))
    assert [change["facts"]["name"] for change in page["changes"]] == ["three", "two"]
    rest = document(say("audit", "--before", page["next"], "--json"))
    assert ([change["facts"]["name"] for change in rest["changes"]], rest["next"]) == (["one"], None)
    code, out, err = say("audit", "--limit", "2")
    assert (code, "token.create" in out) == (0, True)
    assert f"onboard audit --before {page['next']}" in err


def test_doctor_tells_of_tokens_that_end_soon(command_line: CommandLine) -> None:
    def tokens() -> str:
        return str(command_line("doctor", "--json").check("tokens")["found"])

    services = open_services(Settings())
    try:
        assert "only this machine" in tokens()
        access.create_token(services.database, "lasting", ["read"], "never")
        assert tokens() == "1 works"
        token, _ = access.create_token(services.database, "ending", ["read"], "30d")
        assert tokens() == "2 work"
        with services.database.write() as session:
            ends = database_now() + 3.01 * 86_400
            session.execute(update(TokenRow).where(TokenRow.id == token.id).values(expires_at=ends))
        assert tokens() == "2 work; ending ends in 3.0 d"
    finally:
        services.close()


def test_limits_are_given_with_a_token_changed_and_shown(say: CommandLine) -> None:
    words = "token create --scope submit --max-jobs 20 --max-bytes 1.5GB --json"
    made = document(say(*words.split()))
    assert (made["name"], made["max_jobs"], made["max_bytes"]) == ("submit", 20, 1_500_000_000)
    assert "20 jobs, 1.5 GB" in say("token", "list").out
    (owner,) = document(say("queue", "show", "--json"))["owners"]
    assert (owner["owner"], owner["jobs_left"], owner["bytes_left"]) == ("submit", 20, 1_500_000_000)
    assert "jobs left" in say("queue", "show").out
    changed = document(say("token", "limit", "submit", "--max-jobs", "1", "--max-bytes", "none", "--json"))
    assert (changed["max_jobs"], changed["max_bytes"]) == (1, None)
    assert say("token", "limit", "submit", "--max-jobs", "0").out.strip() == "submit: 0 jobs"
    assert say("token", "limit", "submit", "--max-jobs", "none").out.strip() == "submit: no limits"


@pytest.mark.parametrize(
    ("words", "code", "type_"),
    [
        ("create --scope submit --max-jobs -1", 2, "quota-negative"),
        ("create --scope submit --max-bytes 1.5", 2, "size-invalid"),
        ("create --scope submit --max-bytes 99999TB", 2, "size-invalid"),
        ("limit submit --max-jobs few", 2, "job-limit-invalid"),
        ("limit submit --max-jobs -1", 2, "quota-negative"),
        ("limit submit --max-bytes -1GB", 2, "size-invalid"),
        ("limit submit", 2, "quota-without-limits"),
        ("limit nobody --max-jobs 3", 3, "unknown-owner"),
    ],
)
def test_limits_that_are_none_are_refused_by_the_commands(say: CommandLine, words: str, code: int, type_: str) -> None:
    document(say("token", "create", "--scope", "submit", "--json"))
    said = say("token", *words.split(), "--json")
    assert said.code == code
    require(said.document["error"], type_)
