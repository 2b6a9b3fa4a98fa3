"""URLs of webhooks and addresses of hosts: whatever they are written like, a message goes where it is allowed to."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from bounded import bounded
from hypothesis import example, given
from hypothesis import strategies as some

from onboard.domain.webhook import Endpoint
from onboard.errors import InputError
from onboard.operations.webhooks.addresses import is_allowed

ALLOWED = {"hooks.example.com", "b.example.org"}
INNER = [
    ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
        "224.0.0.0/4", "240.0.0.0/4",
    )
]  # fmt: skip
PREFIXES = ["::ffff:0:0", "64:ff9b::", "::", "::ffff:0:0:0", "64:ff9b:1::"]  # the IPv4 address is the last four bytes
pieces = some.sampled_from(
    [
        *ALLOWED, "evil.org", "https://", "http://", "@", ":", "/", "\\", "#", "?", ".", "%2e", "[", "]", "::1", "443",
        "user", "\t", "\n", " ", "\u3002", "\u24d4", "\u00ad", "127.0.0.1", "2130706433", "0x7f.1", "file:",
    ]
)  # fmt: skip
urls = some.one_of(
    some.lists(pieces, max_size=9).map("".join),
    some.lists(pieces, max_size=6).map(lambda parts: "https://hooks.example.com" + "".join(parts)),
    some.text(max_size=60).map(lambda text: f"https://{text}"),
)


@bounded(300)
@given(urls)
@example("https://hooks.example.com\\@evil.org/")
@example("https://hooks.example.com#@evil.org/")
@example("https://evil.org\\.hooks.example.com/")
@example("https://hooks.example.com:443@evil.org/")
@example("https://[::ffff:127.0.0.1]/")
@example("https://hooks.example.com:/")
@example("https://hooks.example.com/\r\nx: y")
def test_a_url_is_refused_or_leads_to_an_allowed_host_and_adds_no_header(url: str) -> None:
    try:
        endpoint = Endpoint.parse(url, ALLOWED)
    except InputError:
        return
    assert endpoint.host in ALLOWED
    assert endpoint.host == urlsplit(url).hostname
    assert endpoint.https
    assert 0 < endpoint.port < 65536
    assert endpoint.target.startswith("/")
    assert all("!" <= letter <= "~" for letter in endpoint.target)


@bounded(100)
@given(some.ip_addresses(v=4), some.sampled_from(PREFIXES))
def test_an_ipv4_address_is_judged_the_same_in_every_dress(address: IPv4Address, prefix: str) -> None:
    inner = any(address in network for network in INNER)
    dressed = IPv6Address(int(IPv6Address(prefix)) + int(address))
    sixtofour = IPv6Address((0x2002 << 112) + (int(address) << 80))
    if inner:
        assert not is_allowed(str(address))
    if not is_allowed(str(address)):
        assert not is_allowed(str(dressed))
        assert not is_allowed(str(sixtofour))
    for spelt in (str(int(address)), hex(int(address)), f"0{int(address):o}"):
        addresses = socket.getaddrinfo(spelt, 443, type=socket.SOCK_STREAM)
        assert {ip_address(entry[4][0]) for entry in addresses} == {address}  # so these are judged as what they are
