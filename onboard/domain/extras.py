"""Optional parts of the package, installed with `pip install 'onboard[NAME]'`."""

from __future__ import annotations

from importlib import import_module

from onboard.errors import NotFoundError


def require_extra(extra: str, *modules: str) -> None:
    """Import the modules of an extra.

    Args:
        extra: its name in pyproject.toml.

    Raises:
        NotFoundError: one is not installed; the remedy is the command that installs it.
    """
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise NotFoundError("extra-not-installed", extra=extra, module=error.name) from error
