"""Connects commands to a service: that of this environment, or the one at ONBOARD_API_URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.output import say

if TYPE_CHECKING:
    from onboard.client.protocol import Service


@contextmanager
def connected(register: bool = True) -> Iterator[Service]:
    """Open the service of the environment.

    Args:
        register: whether to register the base's source tasks first, if the service is that of this environment.
    """
    from onboard.settings import Settings

    settings = Settings()
    if settings.api_url:
        from onboard.client import Onboard

        with Onboard(settings.api_url, settings.token.get_secret_value(), insecure=settings.api_insecure) as client:
            client.in_commands = True
            yield client
        return
    from onboard import local

    with local.Onboard(register=register, notify=say) as service:
        service.in_commands = True
        yield service
