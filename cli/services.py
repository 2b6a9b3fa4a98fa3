"""The services that commands work with on this machine, and the commands that work nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cli.output import say
from onboard.errors import NotAllowedError

if TYPE_CHECKING:
    from onboard.registry.services import Services

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def local_only(name: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Refuse the command of that name where ONBOARD_API_URL names a remote service: it works beside the database only.

    Raises:
        NotAllowedError: when it is called.
    """

    def decorated(command: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(command)
        def guarded(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            require_here(f"onboard {name}")
            return command(*args, **kwargs)

        guarded.__dict__["local_only"] = name
        return guarded

    return decorated


def require_here(what: str = "This command") -> None:
    """Raise NotAllowedError when ONBOARD_API_URL is set."""
    from onboard.settings import Settings

    url = Settings().api_url
    if url:
        raise NotAllowedError("command-needs-service-machine", part=what, url=url)


@contextmanager
def opened(register: bool = True) -> Iterator[Services]:
    """Services as the environment names them; the base's source tasks are registered unless told otherwise.

    Raises:
        NotAllowedError: ONBOARD_API_URL names a remote service.
    """
    from onboard.bases import find_base
    from onboard.hypernetworks.register import register_base
    from onboard.registry.services import open_services
    from onboard.settings import Settings

    require_here()
    settings = Settings()
    is_new = settings.embedded and not _is_there(settings.resolved_home)
    with closing(open_services(settings)) as services:
        if is_new:
            say(f"home: {settings.resolved_home}, made now; ONBOARD_HOME names another folder")
        if register:
            register_base(services, find_base(services.settings.base))
        yield services


def _is_there(home: Path) -> bool:
    try:
        return home.exists()
    except OSError:  # what is wrong with it is said where it is opened
        return True
