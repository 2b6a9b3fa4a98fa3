"""The `onboard` program in this process: starting another one for every command would take minutes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.program import remedy_in

if TYPE_CHECKING:
    from onboard.settings import Settings
    from support.program import Place
    from support.served import Served


class Said(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What stands on standard output with --json."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error that a command with --json ended with."""
        error: dict[str, Any] = self.document["error"]
        return error

    @property
    def remedy(self) -> str:
        return remedy_in(self.err)

    def check(self, what: str) -> dict[str, Any]:
        """One finding of `doctor --json`."""
        finding: dict[str, Any] = next(check for check in self.document["checks"] if check["what"] == what)
        return finding


@dataclass(frozen=True)
class CommandLine:
    """Runs commands; what it sets is undone when the test ends."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def at_home(self, settings: Settings) -> None:
        """From now on commands work with this home, base and device."""
        for name in ("home", "base", "device"):
            self.monkeypatch.setenv(f"ONBOARD_{name.upper()}", str(getattr(settings, name)))

    def in_place(self, place: Place) -> CommandLine:
        """From now on commands run where a user works, with that user's settings."""
        for name, value in place.environment.items():
            self.monkeypatch.setenv(name, value)
        self.monkeypatch.chdir(place.folder)
        return self

    def on_side(self, side: str, service: Served) -> None:
        """From now on commands work beside the service's database ("here") or ask the service ("there")."""
        for name, value in {**service.place.environment, **(service.settings if side == "there" else {})}.items():
            self.monkeypatch.setenv(name, value)
        if side == "here":
            self.monkeypatch.delenv("ONBOARD_API_URL", raising=False)

    def json(self, *words: object, code: int = 0) -> Any:
        """The one document that a command prints with --json; `code` is how it has to end."""
        said = self(*words, "--json")
        assert said.code == code, said.out + said.err
        return said.document

    def __call__(self, *words: object) -> Said:
        """One command to its end."""
        from cli.main import main

        self.capsys.readouterr()  # what the test itself printed
        self.monkeypatch.setattr(sys, "argv", ["onboard", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self.capsys.readouterr()
        return Said(int(ended.value.code or 0), printed.out, printed.err)
