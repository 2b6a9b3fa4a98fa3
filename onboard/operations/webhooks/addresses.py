"""Check the addresses of webhook receivers. A name is resolved once, and only checked addresses are connected to."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from onboard.errors import NotAllowedError, UnavailableError

Address = IPv4Address | IPv6Address

Network = IPv4Network | IPv6Network


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, texts))


# Cloud metadata services, which return the machine's credentials. Others use link-local addresses, which are always
# refused.
_METADATA: Final = _networks(
    "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::/32", "fd20:ce::254", "fd00:42::42"
)
_UNICAST: Final = _networks("0.0.0.0/0", "2000::/3")  # the assigned IPv6 unicast range; excludes site-local fec0::
_NOT_PUBLIC: Final = _networks("192.0.0.0/24", "3fff::/20")  # which older Pythons consider public
_AN_IPV4: Final = _networks("::ffff:0:0/96", "64:ff9b::/96")  # mapped, NAT64: equivalent to the IPv4 address
# compatible, translated (SIIT): checked as IPv4, too
_LAST_FOUR: Final = (*_AN_IPV4, *_networks("::/96", "::ffff:0:0:0/96"))
_LOCAL_NAT64: Final = IPv6Network("64:ff9b:1::/48")
_ISATAP: Final = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def checked_addresses(host: str, port: int, *, insecure: bool = False) -> list[str]:
    """Return the addresses of a host, in the resolver's order.

    Args:
        insecure: allow loopback and private networks. Link-local and metadata addresses are never allowed.

    Raises:
        UnavailableError: the name cannot be resolved.
        NotAllowedError: one of its addresses is not allowed; then none is used.
    """
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnavailableError("webhook-host-unresolved", host=host, reason=error) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in resolved))
    for address in addresses:
        if not is_allowed(address, insecure=insecure):
            raise NotAllowedError("webhook-address-private", host=host, address=address)  # fmt: skip
    return addresses


def is_allowed(address: str, *, insecure: bool = False) -> bool:
    """Return whether a message may be sent to the address. An embedded IPv4 address must be allowed, too."""
    return all(_is_allowed(effective, insecure) for effective in _meant(ip_address(address)))


def _is_allowed(address: Address, insecure: bool) -> bool:
    if _within(address, _METADATA) or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    public = address.is_global and not address.is_reserved and not _within(address, _NOT_PUBLIC)
    return insecure or (public and _within(address, _UNICAST))


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _meant(address: Address) -> Iterator[Address]:
    if isinstance(address, IPv4Address):
        yield address
        return
    if not _within(address, _AN_IPV4):
        yield address
    yield from _embedded(address)


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Return the IPv4 addresses that a translator or tunnel may extract from it."""
    packed = address.packed
    if _within(address, _LAST_FOUR):
        yield IPv4Address(packed[12:])
    if address in _LOCAL_NAT64:  # the position depends on the length of the local prefix (RFC 6052)
        places = (packed[6:8] + packed[9:11], packed[7:8] + packed[9:12], packed[9:13], packed[12:])
        yield from (IPv4Address(place) for place in places if any(place))
    if packed[8:12] in _ISATAP:
        yield IPv4Address(packed[12:])
    yield from address.teredo or ()
    if address.sixtofour is not None:
        yield address.sixtofour
