"""Validate the broker's URL, because library errors would quote it with its password.

No message quotes a part of the URL that may contain a password.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from onboard.errors import InputError

FILES: Final = "filesystem://"
_SCHEMES: Final = ("redis", "rediss")
_FILES_OF_TLS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PLAIN_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "ssl_cert_reqs": ("required", "optional", "none", "CERT_REQUIRED", "CERT_OPTIONAL", "CERT_NONE"),
    "ssl_check_hostname": ("true", "false"),
}
_DATABASE: Final = re.compile(r"/?|/[0-9]{1,4}")
_HOST: Final = re.compile(r"[A-Za-z0-9._:%\[\]-]+")


def require_broker_url(url: str) -> None:
    """Raise InputError unless the URL is `filesystem://` or a Redis URL, with or without TLS."""
    scheme, mark, rest = url.partition("://")
    if scheme == "filesystem" and not rest.strip("/"):
        return
    if not mark or scheme not in _SCHEMES:
        named = f"ONBOARD_BROKER_URL ({scheme}://…)" if mark else "The value of ONBOARD_BROKER_URL"
        memory_hint = " Messages in memory do not reach other processes." if scheme == "memory" else ""
        raise InputError("broker-url-scheme-unknown", named=named, others=memory_hint)
    _require_place(url)
    _require_parameters(url, scheme)


def _require_place(url: str) -> None:
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:  # its message may quote the password
        raise InputError("broker-url-port-invalid") from None
    if "@" in parts.path + parts.query + parts.fragment or (parts.fragment and "@" not in parts.netloc):
        raise InputError("broker-url-password-slash")
    if parts.netloc.count("@") > 1 or re.search("%(?![0-9A-Fa-f]{2})", parts.netloc):
        raise InputError("broker-url-password-at")
    if port == 0 or not host or not _HOST.fullmatch(unquote(host)) or parts.fragment:
        raise InputError("broker-url-without-host")
    if not _DATABASE.fullmatch(parts.path):
        raise InputError("broker-url-database-invalid")


def _require_parameters(url: str, scheme: str) -> None:
    for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if name not in (*_PLAIN_VALUES, *_FILES_OF_TLS):
            raise InputError("broker-url-parameter-unknown", parameter=name, known=[*_PLAIN_VALUES, *_FILES_OF_TLS])
        if scheme != "rediss":
            raise InputError("broker-url-parameter-of-tls", parameter=name)
        if name in _PLAIN_VALUES and value not in _PLAIN_VALUES[name]:
            raise InputError(
                "broker-url-parameter-wrong", parameter=name, value=value, plain_value=list(_PLAIN_VALUES[name])
            )
        if name in _FILES_OF_TLS:
            _require_file(name, value)


def _require_file(name: str, value: str) -> None:
    try:
        if name == "ssl_ca_certs":
            ssl.create_default_context(cafile=value)
        else:
            Path(value).read_bytes()
    except (OSError, ValueError) as error:
        reason = (
            "it is not a certificate" if isinstance(error, ssl.SSLError) else getattr(error, "strerror", "") or error
        )
        raise InputError("broker-url-file-unusable", parameter=name, value=value, reason=reason) from error
