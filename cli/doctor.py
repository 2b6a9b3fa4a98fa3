"""`onboard doctor`: check connections, device and base, and print the command that repairs a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from cli.output import AsJson, emit, table
from onboard.errors import OnboardError

if TYPE_CHECKING:
    from cli.columns import Columns
    from onboard.settings import Settings

Check = Callable[["Settings"], str]
"""Says what was found, or raises what is wrong."""


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check.

    Args:
        remedy: the command that repairs it; empty if it passed.
        exit_code: the exit code of the command if it failed.
    """

    what: str
    ok: bool
    found: str
    remedy: str = ""
    exit_code: int = 0


def doctor(as_json: AsJson = False) -> None:
    """Check everything that a job needs; exit with 0 if there are no problems."""
    from onboard.settings import Settings

    settings = Settings()
    findings = [_looked_at(what, check, settings) for what, check in _checks(settings).items()]
    document = {"ok": all(finding.ok for finding in findings), "checks": [asdict(finding) for finding in findings]}
    emit(document, as_json, lambda: _table(findings))
    raise typer.Exit(next((finding.exit_code for finding in findings if not finding.ok), 0))


def _checks(settings: Settings) -> Mapping[str, Check]:
    """Of this environment, or of what a remote service shows."""
    if settings.api_url:
        from cli import remote_doctor

        return remote_doctor.CHECKS
    from cli import local_doctor

    return local_doctor.CHECKS


def _looked_at(what: str, check: Check, settings: Settings) -> Diagnosis:
    try:
        return Diagnosis(what, True, check(settings))
    except OnboardError as error:
        return Diagnosis(what, False, error.message, error.remedy, error.exit_code)
    except Exception as error:  # noqa: BLE001 - the outermost edge of one check: the others say what they find
        from workers.logs import hide_passwords

        stumbled = hide_passwords(f"{type(error).__name__}: {error}".partition("\n")[0])
        return Diagnosis(what, False, stumbled, "This is a bug: please report it.", OnboardError.exit_code)


def _table(findings: list[Diagnosis]) -> Columns:
    heads = ("check", "", "found", "repair it with")
    rows = ((finding.what, "ok" if finding.ok else "wrong", finding.found, finding.remedy) for finding in findings)
    return table(heads, rows, folded=heads[2:])
