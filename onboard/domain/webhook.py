"""Webhooks: receivers, signing keys, and the state of deliveries.

The messages follow the Standard Webhooks specification (https://www.standardwebhooks.com).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from onboard.errors import InputError

PUBLISHED: Final = "version.published"
CONFIRMED: Final = "version.confirmed"  # a provisional version became the final one of its job
MOVED: Final = "alias.moved"
DELETED: Final = "task.deleted"
DRIFTED: Final = "task.drifted"  # a version's texts have changed; once a version and week

_KEY_BYTES: Final = (24, 64)  # minimum and maximum by the specification
_MARKS: Final = re.compile(r"[,;|]")  # separators of lists in other settings
_SEVERAL: Final = re.compile(r"[,;|](?:https?://|$)", re.IGNORECASE)
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A receiver.

    Args:
        name: its name in the database and in messages: its host and a digest of its URL, parts of which may be secret.
        host: in lower case, without the port.
        target: path and query.
    """

    name: str
    https: bool
    host: str
    port: int
    target: str = field(repr=False)

    @classmethod
    def parse(cls, url: str, hosts: Collection[str], *, insecure: bool = False) -> Endpoint:
        """Parse a URL. Messages show its host only.

        Args:
            insecure: whether http:// is allowed, too.

        Raises:
            InputError: the URL is not allowed.
        """
        if _SEVERAL.search(url):
            raise InputError("webhook-urls-not-separated")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise InputError("webhook-url-invalid", reason=error) from error
        if not _VISIBLE.fullmatch(url) or host is None or parts.username is not None or port == 0:
            raise InputError("webhook-url-wrong")
        if parts.scheme != "https" and not (insecure and parts.scheme == "http"):
            raise InputError("webhook-not-https", host=host)
        if host not in hosts:
            raise InputError("webhook-host-not-allowed", host=host)
        https = parts.scheme == "https"
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        name = f"{host}/{hashlib.sha256(url.encode()).hexdigest()[:8]}"
        return cls(name, https, host, port or (443 if https else 80), target)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The settings of webhooks.

    Args:
        keys: messages are signed with each of them, so that keys can be rotated.
        insecure: whether http:// and addresses of private networks are allowed.
    """

    endpoints: tuple[Endpoint, ...]
    keys: tuple[bytes, ...] = field(repr=False)
    insecure: bool = False

    @classmethod
    def parse(cls, urls: str, hosts: str, secrets: str, *, insecure: bool) -> Webhooks:
        """Parse the settings, each a list separated by spaces. Without a URL there are no webhooks.

        Raises:
            InputError: they are invalid, or there is no secret.
        """
        if _MARKS.search(hosts):
            raise InputError("webhook-hosts-not-separated")
        allowed = {host.lower() for host in hosts.split()}
        endpoints = tuple(Endpoint.parse(url, allowed, insecure=insecure) for url in dict.fromkeys(urls.split()))
        keys = tuple(map(_key, secrets.split()))
        if endpoints and not keys:
            raise InputError("webhook-secret-missing")
        return cls(endpoints, keys, insecure)


def _key(secret: str) -> bytes:
    least, most = _KEY_BYTES
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:  # not ASCII, or not base64
        key = b""
    if not secret.startswith("whsec_") or not least <= len(key) <= most:
        raise InputError("webhook-secret-invalid", least=least, most=most)
    return key


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message to one endpoint.

    Args:
        id: of the message; the same at every attempt and for every endpoint.
        at: time of the event, in epoch seconds.
    """

    id: str
    endpoint: str
    type: str
    at: float
    data: dict[str, Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class EndpointState:
    """The state of deliveries to one endpoint, without delivered ones.

    Args:
        waiting: not delivered yet.
        failing: how many of them have failed attempts.
        given_up: number given up in the last day, after too many attempts.
        error: error of the newest failure, None if there is none.
    """

    endpoint: str
    waiting: int
    failing: int
    given_up: int
    error: str | None
