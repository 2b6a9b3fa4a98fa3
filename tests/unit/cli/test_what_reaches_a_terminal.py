"""Nothing that a service or a stranger wrote steers the terminal of whoever runs a command."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine
from support.small_server import SilentHandler, serving

from cli.output import emit, print_line, report_error, say, table
from onboard.domain.printable import printable_json
from onboard.errors import ConflictError, InputError

CLI = Path(__file__).parents[3] / "cli"
HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x1b]8;;https://evil.test\x1b\\link \x9b31m \x7f \u202e turned \u2066 \u200b \ud800 [link=https://evil.test]x"
_BOLD = re.compile(r"\x1b\[[0-9;]*m")  # the heads of tables
ANSWERS = {
    "/v1/jobs/x": (404, {"code": "not_found", "message": f"No job.\nerror: {HOSTILE}", "remedy": HOSTILE}),
    "/v1/jobs": (200, {"jobs": [], "next": None}),
    "/v1/queue": (500, {"detail": HOSTILE}),
    "/v1/me": (200, {"name": HOSTILE, "actor": HOSTILE, "scopes": [HOSTILE], "onboard": HOSTILE}),
}


def steering(shown: str) -> list[str]:
    """Characters of it that a terminal may obey, or that hide what stands there."""
    return [sign for sign in shown if sign != "\n" and unicodedata.category(sign) in ("Cc", "Cf", "Cs")]


@pytest.fixture
def service() -> Iterator[str]:
    """The URL of a service that answers what it likes."""

    class Handler(SilentHandler):
        def do_GET(self) -> None:
            status, document = ANSWERS.get(self.path.partition("?")[0], (418, {"title": HOSTILE}))
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/problem+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("words", ["jobs show x", "queue show", "tasks list", "versions paws", "doctor"])
@pytest.mark.parametrize("as_json", [False, True], ids=["people", "json"])
def test_what_a_service_answers_is_cleaned(
    words: str, as_json: bool, service: str, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBOARD_API_URL", service)
    monkeypatch.setenv("ONBOARD_TOKEN", "onb_secret")
    said = command_line(*words.split(), *(["--json"] if as_json else []))
    assert said.code != 0
    assert steering(said.out + said.err) == []
    assert "turned" in said.out + said.err
    if as_json:
        assert repr(HOSTILE)[1:-1] in repr(json.loads(said.out))


def test_an_answer_cannot_pass_for_two_errors(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(ConflictError("It is.\nerror: it is not", "do\n  → harm"), as_json=False)
    assert capsys.readouterr().err == "error: It is. error: it is not\n  → do → harm\n"
    problems = [{"row": number, "message": f"is wrong\nerror: {HOSTILE}"} for number in (1, 2)]
    report_error(InputError("It is.", problems=problems), as_json=False)
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 3
    assert steering(shown) == []


@pytest.mark.parametrize("terminal", [False, True])
def test_tables_and_lines_are_cleaned(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    emit({}, False, lambda: table(("a", HOSTILE), [(HOSTILE, [HOSTILE, HOSTILE])]))
    emit({}, False, lambda: HOSTILE)
    print_line(HOSTILE)
    say(HOSTILE + "\tafter a tab")
    printed = capsys.readouterr()
    assert steering(_BOLD.sub("", printed.out) + printed.err) == []
    assert "[link=" in printed.out
    assert "   after a tab" in printed.err


def test_json_says_the_same_in_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    document: dict[str, Any] = {"label": HOSTILE + "\U000e0041 ä 👩\u200d🔬", "n": [1, 2.5, None]}
    emit(document, True, str)
    shown = capsys.readouterr().out
    assert json.loads(shown) == document
    assert steering(shown) == ["\u200d"]  # within an emoji
    assert "ä 👩\u200d🔬" in shown
    assert printable_json('{"a": 1}\n') == '{"a": 1}\n'


def test_no_command_writes_past_the_cleaning() -> None:
    """`sys.stdout.write`, `print` and rich's own console stand in the two modules that clean, and nowhere else."""
    writing = {
        f"{path.name}:{node.lineno}"
        for path in sorted(CLI.rglob("*.py"))
        if path.name not in ("output.py", "console.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "Console", "typer.echo", "sys.stdout.write", "sys.stderr.write")
    }
    assert writing == set()
