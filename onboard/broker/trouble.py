"""Explain why the broker cannot be used: password, TLS, or unreachable."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from onboard.errors import UnavailableError

AWAY: Final = "away"
_PROBE_SECONDS: Final = 3.0
_PASSWORD: Final = ("password", "authentication", "noauth", "wrongpass", "noperm")


def trouble(error: BaseException, url: str) -> UnavailableError:
    """Convert a broker error. `data["trouble"]` is away, password, tls, plain or certificate.

    All kinds except `away` are mistakes in ONBOARD_BROKER_URL, so retrying does not help. HTTP clients do not see the
    broker's address.
    """
    place = url.rpartition("@")[2].partition("?")[0]
    kind = _kind(error, url)
    reason = _told(error) if kind == "certificate" else str(error).rstrip(".")
    facts = {"broker": place, "reason": reason, "trouble": kind}
    trouble = {
        "password": UnavailableError("broker-password-wrong", **facts),
        "tls": UnavailableError("broker-needs-tls", **facts),
        "plain": UnavailableError("broker-without-tls", **facts),
        "certificate": UnavailableError("broker-certificate-not-trusted", **facts),
        AWAY: UnavailableError("broker-unreachable-at", **facts),
    }[kind]
    outside = UnavailableError("broker-unusable")
    return trouble.hide(outside)


def _kind(error: BaseException, url: str) -> str:
    parts = urlsplit(url)
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "certificate"
    if any(word in str(error).lower() for word in _PASSWORD):
        return "password"
    if parts.scheme in ("redis", "rediss"):
        speaks_tls = _speaks_tls(parts.hostname or "127.0.0.1", parts.port or 6379)
        if speaks_tls is not None and speaks_tls != (parts.scheme == "rediss"):
            return "tls" if speaks_tls else "plain"
    return AWAY


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _told(error: BaseException) -> str:
    """Return the reason why a certificate was rejected, or an empty text."""
    refusals = [cause.verify_message for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)]
    return "".join(refusals[:1])


def _speaks_tls(host: str, port: int) -> bool | None:
    """Return whether a TLS handshake succeeds without verification; None if the host does not answer."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _PROBE_SECONDS) as plain:
            try:
                with context.wrap_socket(plain, server_hostname=host):
                    return True
            except OSError:
                return False
    except OSError:
        return None
