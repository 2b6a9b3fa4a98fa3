"""The server process: where it listens, who may sign in, and how it ends."""

from __future__ import annotations

import ipaddress
import signal
import socket
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

GRACE_SECONDS: Final = 10  # that open requests have to end; streams of events end at once
_IDLE_SECONDS: Final = 30  # that a connection stays open without a request
_WAITING: Final = 2048  # connections that wait to be accepted
_END: Final = (signal.SIGTERM, signal.SIGINT)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        port: 0 takes a free one.

    Raises:
        InputError: the host is no address of this machine.
        NotAllowedError: the port is for the superuser only.
        UnavailableError: the port is in use.
    """
    family, address = _addresses(host, port)[0]
    try:
        listening = socket.create_server(address[:2], family=family, backlog=_WAITING)
        # asyncio sets it for sockets that name TCP only; without it every answer with a body waits 40 ms for an ACK
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except PermissionError as error:
        raise NotAllowedError("port-forbidden", port=port) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnavailableError("port-unavailable", host=host, port=port, reason=reason) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. Raises InputError when it is none."""
    return all(ipaddress.ip_address(address[0]).is_loopback for _, address in _addresses(host, 0))


def admit(database: Database, settings: Settings, host: str) -> str | None:
    """See that somebody can sign in, before anybody is listened to.

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
    """How to ask for what the socket listens to."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def serve(settings: Settings, listening: socket.socket, *, preload: bool = False) -> None:
    """Answer until SIGTERM or Ctrl-C, then let open requests end.

    Args:
        preload: whether the model is loaded before the first request is answered.

    Raises:
        UnavailableError: it could not start; the log says why.
    """
    keep_memory_steady()
    proxies = settings.trusted_proxies.split()
    config = uvicorn.Config(
        create_app(settings, preload=preload),
        log_config=None,
        access_log=False,  # its lines would have the codes of links in them
        server_header=False,
        ws="none",
        http=Deadlines,  # on h11, which bounds what is kept of a head that does not end
        h11_max_incomplete_event_size=HEAD_BYTES,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    # from now on; when all is over uvicorn raises the signal again, which would end us with its number
    for ending in _END:
        signal.signal(ending, server.handle_exit)
    with closing(listening):
        server.run(sockets=[listening])
    if not server.started:
        raise UnavailableError("service-did-not-start")


class _Server(uvicorn.Server):
    """Ends event streams and checks when it is told to leave: they would hold it until the grace is over."""

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
