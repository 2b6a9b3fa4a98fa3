"""Parts of the package that not everybody needs: what `pip install 'onboard[NAME]'` adds."""

from __future__ import annotations

from importlib import import_module

from onboard.errors import NotFoundError


def require_extra(extra: str, *modules: str) -> None:
    """Import what an extra brings.

    Args:
        extra: its name in pyproject.toml.
        modules: of the packages that it names.

    Raises:
        NotFoundError: one is not installed; the remedy is the command that mends it.
    """
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise NotFoundError("extra-not-installed", extra=extra, module=error.name) from error
