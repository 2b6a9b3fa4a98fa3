"""The services that commands use on this machine, and a decorator for commands that work only there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cli.output import say

if TYPE_CHECKING:
    from onboard.registry.services import Services

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def local_only(name: str) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Refuse the command with this name if ONBOARD_API_URL names a remote service, as it needs the database.

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
    from onboard.local import require_here

    require_here(what)


@contextmanager
def opened(register: bool = True) -> Iterator[Services]:
    """Open the services of the environment. The base's source tasks are registered, unless `register` is false.

    Raises:
        NotAllowedError: ONBOARD_API_URL names a remote service.
    """
    from onboard import local

    local.require_here()
    with local.Onboard(register=register, notify=say) as service:
        yield service.services
