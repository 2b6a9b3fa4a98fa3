"""The services that commands work with, opened once, with the default base registered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.services import Services


@contextmanager
def opened(register: bool = True) -> Iterator[Services]:
    """Services as the environment names them; the base's source tasks are registered unless told otherwise."""
    from onboard.bases import find_base
    from onboard.register import register_base
    from onboard.services import open_services
    from onboard.settings import Settings

    settings = Settings()
    if settings.api_url:
        raise InputError(
            "ONBOARD_API_URL is set, but this version cannot talk to a remote service yet.", "unset ONBOARD_API_URL"
        )
    services = open_services(settings)
    try:
        if register:
            register_base(services, find_base(services.settings.base))
        yield services
    finally:
        services.close()
