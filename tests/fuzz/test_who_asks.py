"""What anybody may send before it is known who asks: each reader gives an answer or one of our errors."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv6Address, IPv6Network

import pytest
from bounded import bounded
from hypothesis import example, given
from hypothesis import strategies as some
from starlette.datastructures import Headers

from onboard.api.deps import decode_number
from onboard.api.guarding import caller_address, require_host, require_same_site, require_small, session_cookie
from onboard.domain.access import (
    LEAST_LETTERS,
    LONGEST_SECONDS,
    Scope,
    read_lifetime,
    read_scopes,
    require_given_token,
)
from onboard.errors import HostError, InputError, NotAllowedError, TooLargeError
from onboard.settings import Settings

OURS = frozenset({"localhost", "onboard.example"})
VALUES = some.binary(max_size=80)  # of a header, as a server hands it on
HOSTILE = [b"localhost@evil", b"[", b"[::1", b"[v1.x]", b"localhost:", b":80", b"\xff", b"localhost\x00", b"a" * 300]


def headers(name: str, *values: bytes) -> Headers:
    return Headers(raw=[(name.encode(), value) for value in values])


@bounded(100)
@given(VALUES)
@example(b"localhost:99999")
@example(b"[::ffff:127.0.0.1]:80")
def test_a_host_is_ours_or_refused(value: bytes) -> None:
    with suppress(HostError):
        require_host(headers("host", value), OURS)
        name = value.decode("latin-1").lower()
        assert name.startswith(tuple(OURS)) or name.lstrip("[")[0] in "0123456789abcdef:"
        assert not {"@", "/", "?", "#", "\\"} & set(name)


@pytest.mark.parametrize("value", HOSTILE)
def test_odd_hosts_are_refused(value: bytes) -> None:
    if value != b"localhost:":  # an empty port is none (RFC 3986)
        with pytest.raises(HostError):
            require_host(headers("host", value), OURS)


@bounded(100)
@given(VALUES, VALUES)
@example(b"http://localhost", b"localhost")
@example(b"http://[", b"[")
def test_an_origin_is_the_host_or_refused(origin: bytes, host: bytes) -> None:
    given_headers = Headers(raw=[(b"origin", origin), (b"host", host)])
    with suppress(NotAllowedError):
        require_same_site(given_headers)
        assert host.lower() in origin.lower()


@bounded(100)
@given(some.lists(VALUES, max_size=3))
@example([b'onboard_session="\\"'])
@example([b"onboard_session=a; onboard_session=b"])
def test_a_cookie_is_read_or_is_none(values: list[bytes]) -> None:
    assert session_cookie(headers("cookie", *values)) is None or b"onboard_session" in b"".join(values)


@bounded(100)
@given(VALUES)
@example(b"\xb2")  # a digit that is no decimal
def test_a_length_is_never_misread(value: bytes) -> None:
    with suppress(TooLargeError):
        require_small(headers("content-length", value), 100)
        assert not value.isdigit() or int(value) <= 100


@bounded(100)
@given(some.text(max_size=60) | some.ip_addresses().map(str))
@example("fe80::1%25eth0")
@example("::ffff:1.2.3.4")
@example("1:2")
def test_any_address_counts_as_itself_or_as_the_network_of_one_customer(address: str) -> None:
    caller = caller_address({"client": (address, 1)})
    if caller != address:
        network = IPv6Network(caller)
        assert IPv6Address(address.partition("%")[0]) in network
        assert caller_address({"client": (str(network[-1]), 1)}) == caller
        neighbor = IPv6Address(int(network[0]) ^ 1 << 64)
        assert caller_address({"client": (str(neighbor), 1)}) != caller


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"])
def test_only_addresses_of_version_6_count_as_networks(address: str) -> None:
    assert (caller_address({"client": (address, 1)}) == address) == ("." in address)


@bounded(100)
@given(some.text(max_size=30))
@example("٣")
@example("1\n")
@example("9" * 19)
def test_a_number_of_a_page_is_one_that_the_database_takes(cursor: str) -> None:
    with suppress(InputError):
        assert 1 <= (decode_number(cursor) or 1) < 2**63


@bounded(100)
@given(some.text(max_size=30) | some.from_regex(r"\A[0-9]{1,12}[a-z]\Z"))
def test_a_lifetime_is_short_of_for_ever_or_refused(text: str) -> None:
    with suppress(InputError):
        seconds = read_lifetime(text)
        assert seconds is None or 0 < seconds <= LONGEST_SECONDS


@bounded(100)
@given(some.lists(some.text(max_size=20) | some.sampled_from(list(Scope)), max_size=6))
def test_scopes_are_ours_or_refused(names: list[str]) -> None:
    with suppress(InputError):
        assert set(Scope) >= read_scopes(names) != frozenset()


@bounded(100)
@given(some.text(max_size=300))
def test_a_token_that_was_given_can_stand_in_a_header(secret: str) -> None:
    with suppress(InputError):
        token = require_given_token(secret, "the file")
        assert len(token) >= LEAST_LETTERS
        assert token.isascii()
        assert token.isprintable()
        assert " " not in token


@bounded(100)
@given(some.text(max_size=60))
@example("10.0.0.0/33")
@example("::/0")
def test_proxies_are_networks_or_refused(text: str) -> None:
    with suppress(InputError):
        assert Settings(trusted_proxies=text).trusted_proxies == text
