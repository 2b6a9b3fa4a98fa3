"""Tokens, the sessions of browsers, and what a start of the service needs of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import delete, update
from starlette.requests import Request
from support.callers import bearer
from support.refusals import refused as error_of

from onboard.api import following
from onboard.api.access import require_guarded, requires
from onboard.api.app import create_app
from onboard.domain.access import LONGEST_SECONDS, Identity, Scope, acting, read_lifetime, read_scopes
from onboard.errors import InputError, NotAllowedError, NotFoundError, ScopeError, SignInError
from onboard.operations import access
from onboard.registry.access_tables import SessionRow, SignInCodeRow, TokenRow
from onboard.registry.clock import database_now, read_clock
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.sessions import SessionRepository
from onboard.registry.tokens import TokenRepository
from onboard.settings import Settings

HERE = {"Origin": "http://localhost"}
JOBS = "/v1/jobs"


@pytest.fixture
def client(tiny_services: Services) -> Iterator[TestClient]:
    settings = tiny_services.settings.model_copy(update={"start_worker": False})
    with TestClient(create_app(settings), base_url="http://localhost", follow_redirects=False) as client:
        yield client


def change(database: Database, table: type[TokenRow | SessionRow | SignInCodeRow], **values: object) -> None:
    """What time would do."""
    with database.write() as session:
        session.execute(update(table).values(**values))


def test_a_route_that_forgets_its_scope_stops_the_start() -> None:
    app = FastAPI(openapi_url=None)

    def nothing() -> None: ...

    app.get("/good", dependencies=[Depends(requires(Scope.READ))])(nothing)
    app.get("/healthz")(nothing)
    require_guarded(app)
    app.get("/forgotten")(nothing)
    with pytest.raises(RuntimeError, match="/forgotten"):
        require_guarded(app)


def test_applications_share_routes_that_were_analyzed_once_and_nothing_that_one_of_them_adds(tmp_path: Path) -> None:
    one, other = (create_app(Settings(home=tmp_path / name)) for name in ("one", "other"))
    assert [id(route) for route in one.routes] == [id(route) for route in other.routes]
    one.get("/added")(lambda: None)
    assert len(one.routes) == len(other.routes) + 1 == len(create_app(Settings(home=tmp_path)).routes) + 1


def test_a_token_is_shown_once_and_kept_as_a_digest(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.ADMIN)
    made = client.post("/v1/tokens", json={"name": "shop", "scopes": ["read"]}, headers=headers).json()
    for path in ("/v1/tokens?all=true", "/v1/audit"):
        assert made["secret"] not in client.get(path, headers=headers).text
    for file in tiny_services.settings.resolved_home.glob("onboard.db*"):
        assert made["secret"].encode() not in file.read_bytes()
    assert client.get(JOBS, headers={"Authorization": f"Bearer {made['secret']}"}).status_code == 200
    (shown,) = [
        token for token in client.get("/v1/tokens", headers=headers).json()["tokens"] if token["name"] == "shop"
    ]
    assert shown["last_used_at"] is not None
    assert "secret" not in shown


def test_the_last_use_is_written_at_most_once_a_minute_and_after_the_answer(
    client: TestClient, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    used = TokenRepository.used
    monkeypatch.setattr(TokenRepository, "used", lambda self, id_: (written.append(id_), used(self, id_)))
    headers = bearer(tiny_services.database, Scope.READ)
    for _ in range(3):
        client.get(JOBS, headers=headers)
    assert len(written) == 1
    change(tiny_services.database, TokenRow, last_used_at=TokenRow.last_used_at - 61)
    client.get(JOBS, headers=headers)
    client.get(JOBS, headers=headers)
    assert len(written) == 2


def test_a_database_that_cannot_be_written_just_now_refuses_nobody(
    database: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = access.create_token(database, "reader", ["read"])
    identity = access.identify(database, secret)
    assert identity.use_due

    def busy(*_: object) -> None:
        raise NotAllowedError("The disk is read-only.")

    monkeypatch.setattr(TokenRepository, "used", busy)
    access.note_use(database, identity)
    assert "was not recorded" in caplog.text
    assert secret not in caplog.text


def test_a_revoked_token_is_refused_from_the_next_request_on(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.READ)
    assert client.get(JOBS, headers=headers).status_code == 200
    access.revoke_token(tiny_services.database, "test")
    refused = client.get(JOBS, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "sign_in")
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_token_ends_when_its_time_is_over_by_the_clock_of_the_database(database: Database) -> None:
    token, secret = access.create_token(database, "short", ["read"], "30d")
    with database.read() as session:
        assert token.expires_at == pytest.approx(read_clock(session) + 30 * 86_400, abs=60)
    assert access.identify(database, secret).name == "short"
    change(database, TokenRow, expires_at=database_now() + 60)
    assert access.identify(database, secret).name == "short"
    change(database, TokenRow, expires_at=database_now())
    with error_of("token-not-valid", state="expired"):
        access.identify(database, secret)
    assert list(access.list_tokens(database)) == []
    assert [token.name for token in access.list_tokens(database, include_ended=True)] == ["short"]
    with error_of("host-without-token"):
        access.require_some_token(database, "0.0.0.0")


def test_unknown_and_revoked_tokens_name_nobody(database: Database) -> None:
    with error_of("token-unknown"):
        access.identify(database, "onb_never-made")
    token, secret = access.create_token(database, "old", ["read"])
    assert access.identify(database, secret).name == "old"
    assert access.revoke_token(database, token.id).revoked_at == access.revoke_token(database, token.id).revoked_at
    with error_of("token-not-valid", state="revoked"):
        access.identify(database, secret)
    assert ScopeError("old", Scope.OPS).http_status == 403


def test_a_name_means_the_token_that_works_before_one_that_has_expired(database: Database) -> None:
    old, _ = access.create_token(database, "ci", [Scope.READ])
    change(database, TokenRow, expires_at=1.0)
    present, _ = access.create_token(database, "ci", [Scope.READ])
    assert access.revoke_token(database, "ci").id == present.id
    assert access.revoke_token(database, "ci").id == old.id  # the only one that is left
    with pytest.raises(NotFoundError):
        access.revoke_token(database, "ci")


def test_a_name_that_several_tokens_have_revokes_none_of_them(database: Database) -> None:
    first, _ = access.create_token(database, "shop", ["read"])
    second, _ = access.create_token(database, "shop", ["read"])
    with error_of("token-name-ambiguous") as refused:
        access.revoke_token(database, "shop")
    assert first.id in refused.value.remedy
    access.revoke_token(database, first.id)
    assert access.revoke_token(database, "shop").id == second.id
    with pytest.raises(NotFoundError):
        access.revoke_token(database, "shop")


def test_a_token_without_a_name_is_named_after_what_it_may(database: Database) -> None:
    token, _ = access.create_token(database, None, ["read,submit"])
    assert token.name == "submit-read"
    assert token.scopes == {Scope.READ, Scope.SUBMIT}
    assert token.expires_at is not None


def test_how_long_a_token_lives_is_said_with_a_unit() -> None:
    assert [read_lifetime(text) for text in ("45m", "12h", "30d", "2w", "never")] == [
        2700,
        43200,
        2592000,
        1209600,
        None,
    ]
    assert read_lifetime("3650d") == LONGEST_SECONDS
    for wrong in ("", "30", "d", "0d", "-1d", "3651d", "1y", "30 d", "30D", "1.5d", "٣d", "9" * 40 + "d", "30d\n"):
        with error_of("lifetime-invalid"):
            read_lifetime(wrong)


@pytest.mark.parametrize("wrong", [[], [""], ["READ"], ["read", "all"], ["read,"], ["*"]])
def test_scopes_are_known_words_and_at_least_one(wrong: list[str]) -> None:
    with pytest.raises(InputError):
        read_scopes(wrong)


def test_what_a_token_wants_is_checked_over_http(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.ADMIN)
    for order in (
        {"scopes": []},
        {"scopes": ["all"]},
        {"scopes": ["read"], "expires": "1y"},
        {"scopes": ["read"], "name": "Mine"},
        {"scopes": ["read"], "days": 3},
    ):
        assert client.post("/v1/tokens", json=order, headers=headers).status_code == 422, order
    made = client.post("/v1/tokens", json={"scopes": ["read"], "expires": "never"}, headers=headers)
    assert (made.status_code, made.json()["expires_at"], made.json()["name"]) == (201, None, "read")
    assert made.headers["cache-control"] == "no-store"


def test_a_link_signs_in_once_and_only_the_newest_one(client: TestClient, tiny_services: Services) -> None:
    earlier, code = access.offer_code(tiny_services.database), access.offer_code(tiny_services.database)
    assert client.get("/login", params={"code": earlier}).status_code == 401
    first = client.get("/login", params={"code": code})
    assert (first.status_code, first.headers["location"], first.headers["cache-control"]) == (303, "/", "no-store")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie  # this is http
    assert code not in cookie
    assert client.get(JOBS).status_code == 200
    assert client.get("/login", params={"code": code}).status_code == 401
    client.post("/logout", headers=HERE)
    assert client.get(JOBS).status_code == 401


def test_behind_tls_the_cookie_travels_by_tls_only(tiny_services: Services) -> None:
    settings = tiny_services.settings.model_copy(update={"start_worker": False})
    with TestClient(create_app(settings), base_url="https://localhost", follow_redirects=False) as client:
        signed_in = client.get("/login", params={"code": access.offer_code(tiny_services.database)})
    assert "; secure" in signed_in.headers["set-cookie"].lower()


def test_a_link_is_good_for_an_hour(database: Database) -> None:
    code = access.offer_code(database)
    change(database, SignInCodeRow, expires_at=database_now())
    with error_of("sign-in-link-used"):
        access.sign_in_by_code(database, code)


def test_of_two_who_use_a_link_at_once_one_gets_in(database: Database) -> None:
    code = access.offer_code(database)
    together = threading.Barrier(4)
    cookies: list[str] = []

    def use() -> None:
        together.wait(30)
        try:
            cookies.append(access.sign_in_by_code(database, code))
        except SignInError:
            cookies.append("")

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, cookies)) == [False, False, False, True]


def test_a_session_ends_by_itself(database: Database) -> None:
    cookie = access.sign_in_by_code(database, access.offer_code(database))
    (session,) = access.list_sessions(database)
    assert access.identify_session(database, cookie) == Identity("local", frozenset(Scope), session=session.id)
    change(database, SessionRow, expires_at=database_now())
    with error_of("session-over"):
        access.identify_session(database, cookie)


def left_of(database: Database) -> float:
    """Seconds that the only session has left."""
    (session,) = access.list_sessions(database)
    with database.read() as opened:
        return session.expires_at - read_clock(opened)


def test_the_session_of_a_link_ends_after_an_hour_without_use_and_after_half_a_day_in_any_case(
    client: TestClient, tiny_services: Services
) -> None:
    database = tiny_services.database
    client.get("/login", params={"code": access.offer_code(database)})
    assert left_of(database) == pytest.approx(3600, abs=60)
    assert client.get("/v1/me").status_code == 200
    change(database, SessionRow, expires_at=database_now() + 2000)
    client.get("/v1/me")
    assert left_of(database) == pytest.approx(2000, abs=60)  # that it is used is not written every time
    change(database, SessionRow, expires_at=database_now() + 1700)
    client.get("/v1/me")
    assert left_of(database) == pytest.approx(3600, abs=60)
    change(database, SessionRow, expires_at=database_now() + 10, created_at=database_now() - 12 * 3600 + 100)
    client.get("/v1/me")
    assert left_of(database) == pytest.approx(100, abs=60)
    change(database, SessionRow, expires_at=database_now())
    assert client.get("/v1/me").status_code == 401


def test_a_page_that_is_left_open_is_in_use(client: TestClient, tiny_services: Services) -> None:
    database = tiny_services.database
    cookie = access.sign_in_by_code(database, access.offer_code(database))
    change(database, SessionRow, expires_at=database_now() + 10)
    request = Request({
        "type": "http", "app": client.app, "headers": [(b"cookie", f"onboard_session={cookie}".encode())],
    })  # fmt: skip
    asyncio.run(following.identifying(request)())  # as a stream of events does all the time
    assert left_of(database) == pytest.approx(3600, abs=60)


def test_the_session_of_a_token_is_as_long_as_it_was(database: Database) -> None:
    _, secret = access.create_token(database, "page", [Scope.READ])
    cookie = access.sign_in(database, secret)
    change(database, SessionRow, expires_at=database_now() + 10)
    access.note_use(database, access.identify_session(database, cookie))
    assert left_of(database) == pytest.approx(10, abs=9)


def test_an_admin_sees_and_ends_the_sessions_of_browsers(
    client: TestClient, tiny_services: Services, token: dict[str, str]
) -> None:
    database = tiny_services.database
    made, secret = access.create_token(database, "page", [Scope.READ])
    access.sign_in(database, secret)
    client.get("/login", params={"code": access.offer_code(database)})
    by_token, local = client.get("/v1/sessions", headers=token).json()["sessions"]
    assert (by_token["name"], by_token["token"], by_token["scopes"]) == ("page", made.id, ["read"])
    assert (local["name"], local["token"], local["scopes"]) == ("local", None, [scope.value for scope in Scope])
    assert client.get("/v1/me").status_code == 200
    ended = client.delete(f"/v1/sessions/{local['id']}", headers=token)
    assert (ended.status_code, ended.json()["id"]) == (200, local["id"])
    line = access.changes(database, 1)["changes"][0]
    assert (line["action"], line["subject"], line["facts"]) == ("session.end", "local", {"id": local["id"]})
    assert client.get("/v1/me").status_code == 401  # from the next request on
    assert client.delete(f"/v1/sessions/{local['id']}", headers=token).status_code == 404
    assert client.get("/v1/sessions", headers=token).json()["sessions"] == [by_token]
    for wrong in ("%25", "_" * 12, by_token["id"][:4], "x" * 64):
        assert client.delete(f"/v1/sessions/{wrong}", headers=token).status_code == 404
    assert client.get("/v1/sessions", headers=bearer(database, *(set(Scope) - {Scope.ADMIN}))).status_code == 403


def test_a_session_may_what_its_token_may_and_ends_with_it(client: TestClient, tiny_services: Services) -> None:
    token, secret = access.create_token(tiny_services.database, "page", [Scope.READ])
    assert client.post("/login", data={"token": f" {secret} "}, headers=HERE).status_code == 303
    assert client.get(JOBS).status_code == 200
    assert client.get("/v1/tokens").status_code == 403
    access.revoke_token(tiny_services.database, token.id)
    assert client.get(JOBS).status_code == 401


def test_a_session_whose_token_has_vanished_is_nobodys(sqlite_url: str) -> None:
    database = Database(sqlite_url, foreign_keys=False)  # a file that somebody repaired by hand
    token, secret = access.create_token(database, "page", ["read"])
    cookie = access.sign_in(database, secret)
    with database.write() as session:
        session.execute(delete(TokenRow).where(TokenRow.id == token.id))
    with pytest.raises(SignInError):
        access.identify_session(database, cookie)
    database.dispose()


def test_a_session_ends_when_its_token_expires(database: Database) -> None:
    cookie = access.sign_in(database, access.create_token(database, "page", ["read"], "1h")[1])
    assert access.identify_session(database, cookie).name == "page"
    change(database, TokenRow, expires_at=database_now())
    with pytest.raises(SignInError):
        access.identify_session(database, cookie)


def test_the_first_page_is_the_form_without_a_session_and_the_overview_with_one(
    client: TestClient, tiny_services: Services
) -> None:
    form = client.get("/")
    assert (form.status_code, form.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert '<form method="post" action="/login">' in form.text
    wrong = client.post("/login", data={"token": "<script>alert(1)</script>"}, headers=HERE)
    assert (wrong.status_code, "unknown" in wrong.text, "alert(1)" in wrong.text) == (401, True, False)
    assert client.get("/login", params={"code": access.offer_code(tiny_services.database)}).headers["location"] == "/"
    for place in ("/", "/docs"):
        page = client.get(place)
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
    assert "local" in client.get("/").text


def test_who_has_signed_in_is_led_to_the_page_that_was_asked_for(client: TestClient, tiny_services: Services) -> None:
    secret = access.create_token(tiny_services.database, "page", [Scope.READ])[1]
    form = client.get("/jobs?task=a&state=failed", headers={"Accept": "text/html"}).text
    assert 'value="/jobs?task=a&amp;state=failed"' in form
    for place, leads in (
        ("/jobs?task=a&state=failed", "/jobs?task=a&state=failed"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
    ):
        answer = client.post("/login", data={"token": secret, "place": place}, headers=HERE)
        assert answer.headers["location"] == leads
    wrong = client.post("/login", data={"token": "wrong", "place": '/jobs?"><script>'}, headers=HERE)
    assert 'value="/jobs?&quot;&gt;&lt;script&gt;"' in wrong.text


def test_a_link_is_not_used_up_when_no_session_begins(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    code = access.offer_code(database)
    with monkeypatch.context() as broken:
        broken.setattr(SessionRepository, "open", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            access.sign_in_by_code(database, code)
    assert access.identify_session(database, access.sign_in_by_code(database, code)).name == "local"


def test_a_browser_that_opens_any_other_page_gets_the_form_too(client: TestClient) -> None:
    page = client.get("/docs", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert client.get("/docs", headers={"Accept": "*/*"}).headers["content-type"] == "application/problem+json"


def test_who_changes_something_is_who_asked_and_else_the_user_of_the_machine(database: Database) -> None:
    access.create_token(database, "first", ["read"])
    with acting("shop (1)"):
        access.create_token(database, "second", ["read"])
    second, first = access.changes(database, 10)["changes"]
    assert second["actor"] == "shop (1)"
    assert "@" in first["actor"]


def test_the_log_of_changes_is_read_page_by_page(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.ADMIN)
    for number in range(4):
        access.create_token(tiny_services.database, f"t{number}", ["read"])
    names, cursor = [], None
    while True:
        page = client.get(
            "/v1/audit", params={"limit": 2} | ({"cursor": cursor} if cursor else {}), headers=headers
        ).json()
        names += [change["facts"]["name"] for change in page["changes"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert names == ["t3", "t2", "t1", "t0", "test"]
    for wrong in ("x", "-1", "0", "1.5", "9" * 30, "٣"):
        assert client.get("/v1/audit", params={"cursor": wrong}, headers=headers).status_code == 422
