"""POST one message to a checked address, without proxies or redirects, and with a total timeout."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Final

from onboard import __version__
from onboard.domain.webhook import Endpoint
from onboard.errors import NotFoundError, UnavailableError
from onboard.operations.webhooks.addresses import checked_addresses

CONNECT_SECONDS: Final = 3.0  # per address
REQUEST_SECONDS: Final = 10.0  # from the connection to the status
_MOST_ADDRESSES: Final = 2
_GONE: Final = 410


def post(endpoint: Endpoint, body: bytes, headers: Mapping[str, str], *, insecure: bool = False) -> None:
    """Send a message. Any status except 2xx is a failure. The response body is not read.

    Raises:
        NotAllowedError: the name resolves to an address that is not allowed.
        NotFoundError: the endpoint is gone for good (410).
        UnavailableError: it could not be reached, took too long, or did not accept the message.
    """
    connection = _Connection(endpoint, checked_addresses(endpoint.host, endpoint.port, insecure=insecure))
    sent = {"content-type": "application/json", "user-agent": f"onboard/{__version__}", **headers}
    try:
        connection.request("POST", endpoint.target, body, sent)
        status = connection.getresponse().status
        if connection.late:  # a cut within the headers looks like their end
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: the connection was cut within TLS
        reason = f"took longer than {REQUEST_SECONDS:.0f} s" if connection.late else str(error) or type(error).__name__
        raise UnavailableError("webhook-unanswered", host=endpoint.host, reason=reason) from error
    finally:
        connection.close()
    if status == _GONE:
        raise NotFoundError("webhook-gone", host=endpoint.host)
    if not 200 <= status < 300:
        raise UnavailableError("webhook-refused", host=endpoint.host, status=status)


class _Connection(http.client.HTTPConnection):
    """Connects to one of the given addresses, without resolving the name again; TLS verifies the name."""

    def __init__(self, endpoint: Endpoint, addresses: list[str]) -> None:
        super().__init__(endpoint.host, endpoint.port, timeout=CONNECT_SECONDS)
        self._endpoint = endpoint
        self._addresses = addresses[:_MOST_ADDRESSES]
        if endpoint.https:
            self.default_port = http.client.HTTPS_PORT  # the Host header includes any other port
        self._cut: Callable[[], None] = lambda: None
        self.late = False

    def connect(self) -> None:
        plain = self._reach()
        plain.settimeout(REQUEST_SECONDS)
        self.sock = plain
        if self._endpoint.https:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False)
        self._end_in_time(self.sock)
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def close(self) -> None:
        self._cut()
        super().close()

    def _reach(self) -> socket.socket:
        for address in self._addresses[:-1]:
            try:
                return socket.create_connection((address, self.port), CONNECT_SECONDS)
            except OSError:
                continue
        return socket.create_connection((self._addresses[-1], self.port), CONNECT_SECONDS)

    def _end_in_time(self, sock: socket.socket) -> None:
        """Enforce a total timeout, because a socket's timeout restarts with every received byte."""

        def end() -> None:
            self.late = True
            with contextlib.suppress(OSError):  # it was just closed
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of SSLSocket, which is not thread-safe

        timer = threading.Timer(REQUEST_SECONDS, end)
        timer.daemon = True
        self._cut = timer.cancel
        timer.start()
