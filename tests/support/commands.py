"""Every command of the program, by its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from cli.main import app


def leaves() -> dict[tuple[str, ...], Any]:
    """The commands that do something, not their groups: ("jobs", "watch") and what it is."""
    return dict(_leaves(typer.main.get_command(app), ()))


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from _leaves(child, (*path, name))
