"""Which service the commands of this environment talk to: its own, or the one at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.local import LocalGateway
    from cli.remote import RemoteGateway
    from onboard.client import Onboard

    Gateway = LocalGateway | RemoteGateway  # what commands ask a service


@contextmanager
def connected(register: bool = True) -> Iterator[Gateway]:
    """The service that the environment names.

    Args:
        register: make the base's source tasks known first, where the service is this environment's.
    """
    with remote_client() as client:
        if client is not None:
            from cli.remote import RemoteGateway

            yield RemoteGateway(client)
            return
    from cli.local import LocalGateway
    from cli.services import opened

    with opened(register) as services, closing(LocalGateway(services)) as gateway:
        yield gateway


@contextmanager
def remote_client() -> Iterator[Onboard | None]:
    """The client of the service at ONBOARD_API_URL; None where that is not set."""
    from onboard.settings import Settings

    settings = Settings()
    if not settings.api_url:
        yield None
        return
    from onboard.client import Onboard

    with Onboard(settings.api_url, settings.token.get_secret_value(), insecure=settings.api_insecure) as client:
        client.in_commands = True
        yield client
