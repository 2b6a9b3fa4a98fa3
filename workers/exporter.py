"""Serve the metrics of the deployment over HTTP, in a worker."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import start_http_server

from onboard.errors import ConflictError, InputError, NotAllowedError, OnboardError
from onboard.operations.prometheus import make_registry
from onboard.registry.database import Database
from onboard.settings import Settings

HOST: Final = "127.0.0.1"  # metrics have no password, so only this machine sees them by default


@contextmanager
def exported(settings: Settings, port: int, host: str = HOST) -> Iterator[str]:
    """Serve the metrics in threads while the context lasts. Yields the URL to scrape.

    Args:
        port: 0 takes a free one.

    Raises:
        ConflictError: something listens there already.
        InputError: this machine has no such address.
        NotAllowedError: the port is reserved for root.
    """
    # asked when someone scrapes; it may be away until then
    with Database(settings.resolved_database_url) as database:
        try:
            server, thread = start_http_server(port, host, make_registry(database))
        except OSError as error:
            raise _refused(error, host, port) from error
        try:
            yield f"http://{host}:{server.server_port}/metrics"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _refused(error: OSError, host: str, port: int) -> OnboardError:
    place = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return ConflictError("metrics-port-taken", port=port, place=place)
    if error.errno == errno.EACCES:
        return NotAllowedError("metrics-port-forbidden", port=port, place=place)
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return InputError("metrics-host-unknown", host=host)
    return InputError("metrics-not-served", place=place, reason=error)
