"""Before the first answer: where the service listens, who could sign in, and what it says of its address."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.real_services import free_port
from support.refusals import refused as error_of

from onboard.api.serve import admit, is_loopback, listen, url_of
from onboard.errors import NotAllowedError
from onboard.operations import access
from onboard.registry.database import Database
from onboard.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_only_this_machine_reaches_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "192.168.0.1", "0", "169.254.169.254"])
def test_others_may_reach_any_other_address(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["", "no-such-host.invalid", "127.0.0.1:8000", "http://localhost", "a" * 300, "\0"])
def test_what_is_no_address_is_said(host: str) -> None:
    with error_of("unknown-listen-address"):
        listen(host, 0)


def test_a_free_port_is_taken_and_shown() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert port > 0
        assert url_of("127.0.0.1", listening) == f"http://127.0.0.1:{port}"
        assert url_of("::1", listening) == f"http://[::1]:{port}"
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_a_port_that_is_taken_and_one_for_the_superuser_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen("127.0.0.1", free_port()) as listening:
        port = listening.getsockname()[1]
        with error_of("port-unavailable", host="127.0.0.1") as refused:
            listen("127.0.0.1", port)
    assert (refused.value.exit_code, "--port" in refused.value.remedy) == (5, True)

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", forbid)
    with error_of("port-forbidden"):
        listen("127.0.0.1", 80)


def test_an_address_of_another_machine_cannot_be_listened_to() -> None:
    with error_of("port-unavailable"):
        listen("192.0.2.1", 0)


def test_on_loopback_a_link_is_offered_and_elsewhere_a_token_is_needed(database: Database, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    code = admit(database, settings, "127.0.0.1")
    assert code is not None
    assert access.identify_session(database, access.sign_in_by_code(database, code)).name == "local"
    with error_of("host-without-token"):
        admit(database, settings, "0.0.0.0")
    access.create_token(database, "any", ["read"])
    assert admit(database, settings, "0.0.0.0") is None


def test_a_bootstrap_file_is_enough_to_listen_elsewhere(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 40)
    file.chmod(0o600)
    assert admit(database, Settings(home=tmp_path, bootstrap_token_file=file), "0.0.0.0") is None
    access.revoke_token(database, access.BOOTSTRAP)
    with pytest.raises(NotAllowedError):  # its token stays revoked
        admit(database, Settings(home=tmp_path, bootstrap_token_file=file), "0.0.0.0")
