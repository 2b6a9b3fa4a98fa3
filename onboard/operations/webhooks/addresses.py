"""Which addresses a message may go to. A name is looked up once; what was checked is what is connected to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from onboard.errors import NotAllowedError, UnavailableError

Address = IPv4Address | IPv6Address

# Clouds answer there with credentials of the machine. Others do at link-local addresses, which are refused anyway.
_METADATA: Final = frozenset(map(ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # NAT64: the last four bytes are an IPv4 address


def checked_addresses(host: str, port: int, *, insecure: bool = False) -> list[str]:
    """The addresses of a host, in the resolver's order.

    Args:
        insecure: whether loopback and private networks are allowed; link-local and metadata addresses never are.

    Raises:
        UnavailableError: the name cannot be resolved.
        NotAllowedError: one of its addresses is not allowed; then none is used.
    """
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnavailableError(f"The name {host} cannot be resolved: {error}.", host=host) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in resolved))
    for address in addresses:
        if not is_allowed(address, insecure=insecure):
            raise NotAllowedError(
                f"{host} is {address}, which is not a public address.", "Webhooks go to public addresses only.",
                host=host,
            )  # fmt: skip
    return addresses


def is_allowed(address: str, *, insecure: bool = False) -> bool:
    """Whether a message may go there. An IPv6 address that stands for an IPv4 address counts as that, too."""
    return all(_is_allowed(meant, insecure) for meant in _meant(ip_address(address)))


def _is_allowed(address: Address, insecure: bool) -> bool:
    if address in _METADATA or address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    return insecure or (address.is_global and not address.is_reserved)


def _meant(address: Address) -> Iterator[Address]:
    if isinstance(address, IPv4Address):
        yield address
        return
    if address in _TRANSLATED:
        yield IPv4Address(address.packed[-4:])
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    yield address
    yield from (address.teredo or ())
    if address.sixtofour is not None:
        yield address.sixtofour
