"""The server process: listening, sign-in, shutdown."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
from contextlib import closing
from types import FrameType
from typing import Final

import uvicorn

from onboard.api.app import create_app
from onboard.api.deadlines import Deadlines
from onboard.api.following import Readers
from onboard.api.guarding import HEAD_BYTES
from onboard.api.intake import Intake
from onboard.errors import InputError, NotAllowedError, UnavailableError
from onboard.operations.access import adopt_bootstrap_token, offer_code, require_some_token
from onboard.operations.memory import keep_memory_steady
from onboard.registry.database import Database
from onboard.settings import Settings

GRACE_SECONDS: Final = 10  # time for open requests to end; event streams end at once
_IDLE_SECONDS: Final = 30  # lifetime of an idle connection
_WAITING: Final = 2048  # connections that wait to be accepted
_SWITCH_SECONDS: Final = 0.0005  # between threads that compute: Python's 5 ms would be most of a quick answer's time
_END: Final = (signal.SIGTERM, signal.SIGINT)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Args:
        port: 0 chooses a free one.

    Raises:
        InputError: the host is not an address of this machine.
        NotAllowedError: only the superuser may use the port.
        UnavailableError: the port is in use.
    """
    family, address = _addresses(host, port)[0]
    try:
        listening = socket.create_server(address[:2], family=family, backlog=_WAITING)
        # asyncio sets it for sockets that name TCP only; without it every response with a body waits 40 ms for an ACK
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except PermissionError as error:
        raise NotAllowedError("port-forbidden", port=port) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnavailableError("port-unavailable", host=host, port=port, reason=reason) from error


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host. Raises InputError if the host is invalid."""
    return all(ipaddress.ip_address(address[0]).is_loopback for _, address in _addresses(host, 0))


def admit(database: Database, settings: Settings, host: str) -> str | None:
    """Make sure that somebody can sign in, before listening.

    Returns:
        The single-use code of a link, on loopback; else None.

    Raises:
        NotAllowedError: others can reach the host, and there is no token.
        InputError: the bootstrap token could be guessed.
    """
    adopt_bootstrap_token(database, settings)
    if is_loopback(host):
        return offer_code(database)
    require_some_token(database, host)
    return None


def url_of(host: str, listening: socket.socket) -> str:
    """Return the URL of the socket."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve(settings: Settings, listening: socket.socket, *, preload: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C, then let open requests end.

    Args:
        preload: load the model before the first request is answered.

    Raises:
        UnavailableError: it could not start; the log contains the reason.
    """
    keep_memory_steady()
    sys.setswitchinterval(_SWITCH_SECONDS)
    proxies = settings.trusted_proxies.split()
    config = uvicorn.Config(
        create_app(settings, preload=preload),
        log_config=None,
        access_log=False,  # its lines would contain the codes of links
        server_header=False,
        ws="none",
        http=Deadlines,  # on h11, which limits the memory for an unfinished head
        h11_max_incomplete_event_size=HEAD_BYTES,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    # after shutdown, uvicorn raises the signal again, which would set our exit status
    for ending in _END:
        signal.signal(ending, server.handle_exit)
    with closing(listening):
        server.run(sockets=[listening])
    if not server.started:
        raise UnavailableError("service-did-not-start")


class _Server(uvicorn.Server):
    """Ends event streams and checks on shutdown; they would otherwise delay it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        state = self.config.app.state  # type: ignore[union-attr]  # our app
        readers: Readers | None = getattr(state, "readers", None)
        intake: Intake | None = getattr(state, "intake", None)
        if readers is not None:
            readers.end()
        if intake is not None:
            intake.end()


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InputError("unknown-listen-address", host=host) from error
    return [(family, (str(address[0]), int(address[1]))) for family, _, _, _, address in addresses]
