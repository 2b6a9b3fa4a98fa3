"""Output that is printed once or repeatedly: in place on a terminal, otherwise as blocks or JSON lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import emit, say, write_json
from onboard.domain.moment import from_iso, seconds_text, utc_text
from onboard.errors import UnavailableError

if TYPE_CHECKING:
    from rich.console import RenderableType

Watch = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="Refresh until Ctrl-C, in place on a terminal. With --json, print one document per line.",
    ),
]
Interval = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Seconds between refreshes.")]
INTERVAL = 2.0


Look = Callable[[], dict[str, Any]]
"""Finds a document; its `at` is the moment by the database's clock, ISO 8601 in UTC."""
Render = Callable[[dict[str, Any]], "RenderableType"]


def present(look: Look, render: Render, as_json: bool, watch: bool, interval: float) -> None:
    """Print the current output; with `watch`, repeat as `keep_looking` does."""
    if watch:
        keep_looking(look, render, as_json, interval)
    else:
        document = look()
        emit(document, as_json, lambda: render(document))


def keep_looking(look: Look, render: Render, as_json: bool, interval: float) -> None:
    """Print the output every `interval` seconds until Ctrl-C, which exits with 130.

    If the database is not available, print a message and wait.
    """
    display = _display(as_json, interval)
    away_since: float | None = None
    try:
        with display:
            while True:
                try:
                    document = look()
                except UnavailableError as error:
                    away_since = away_since or time.monotonic()
                    display.away(error, time.monotonic() - away_since)
                else:
                    away_since = None
                    display.show(document, render)
                time.sleep(interval)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


class _Display:
    """JSON lines, one document each; with an `error` while the database is not available."""

    def __enter__(self) -> _Display:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, seen: dict[str, Any], render: Render) -> None:  # noqa: ARG002 - of those who draw
        self._line(seen)

    def away(self, error: UnavailableError, seconds: float) -> None:  # noqa: ARG002 - of those who draw
        self._line({"error": error.to_json()})

    def _line(self, document: dict[str, Any]) -> None:
        write_json(document)


class _Blocks(_Display):
    """A block of text for each output, with its time as heading."""

    def show(self, seen: dict[str, Any], render: Render) -> None:
        from cli.console import CleanConsole

        CleanConsole(soft_wrap=True).print(seen["at"], render(seen), "", sep="\n")
        sys.stdout.flush()

    def away(self, error: UnavailableError, seconds: float) -> None:
        say(f"{error.message} Waiting for it{_for(seconds)}.")


class _InPlace(_Display):
    """A display that is redrawn in place. The last output stays while the database is not available, and at the end."""

    def __init__(self, interval: float) -> None:
        from rich.live import Live

        from cli.console import CleanConsole

        self._interval = interval
        self._seen: RenderableType = ""
        self._live = Live(console=CleanConsole(), auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> _InPlace:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, seen: dict[str, Any], render: Render) -> None:
        self._seen = render(seen)
        self._draw(f"{utc_text(from_iso(seen['at']))} UTC, every {seconds_text(self._interval)}, Ctrl-C ends", "dim")

    def away(self, error: UnavailableError, seconds: float) -> None:
        self._draw(f"{error.message} Waiting for it{_for(seconds)}; what stands below is old.", "bold red")

    def _draw(self, first_line: str, style: str) -> None:
        from rich.console import Group
        from rich.text import Text

        self._live.update(Group(Text(first_line, style), self._seen), refresh=True)


def _display(as_json: bool, interval: float) -> _Display:
    if as_json:
        return _Display()
    from cli.console import CleanConsole

    # not `is_terminal` of rich: FORCE_COLOR requests colors in a pipe, but not cursor movement
    return _InPlace(interval) if sys.stdout.isatty() and not CleanConsole().is_dumb_terminal else _Blocks()


def _for(seconds: float) -> str:
    return f" for {seconds_text(seconds)}" if seconds >= 1 else ""
