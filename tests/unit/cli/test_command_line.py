"""What commands take and show, whatever they do: datasets as arguments and pipes, names nearly right, whole lines."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from rich.console import Console
from support.command_line import CommandLine
from support.published import add_version

from cli.main import app
from cli.output import table
from cli.versions import _table as versions_table
from onboard.bases import Base
from onboard.hypernetworks.register import register_base
from onboard.registry.services import Services
from onboard.versions.describe import versions_page

ROWS = b"".join(b'{"text": "%s %d", "label": "%s"}\n' % (word, n, word) for n in range(9) for word in (b"sad", b"glad"))


@pytest.fixture
def run(tiny_services: Services, tiny_base: Base, command_line: CommandLine) -> CommandLine:
    command_line.at_home(tiny_services.settings)
    command_line.monkeypatch.setenv("ONBOARD_START_WORKER", "false")
    register_base(tiny_services, tiny_base)
    return command_line


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "moods.jsonl"
    path.write_bytes(ROWS)
    return path


def pipe(command_line: CommandLine, content: bytes) -> None:
    command_line.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_a_dataset_is_an_argument_or_an_option_and_never_both(run: CommandLine, rows: Path) -> None:
    for words in ([rows], ["--dataset", rows]):
        said = run("submit", *words, "--json")
        assert (said.code, said.document["task"]) == (0, "moods"), said.err
    neither, both = run("submit", "--json"), run("submit", rows, "--dataset", rows, "--json")
    assert (neither.code, neither.error["type"]) == (2, "dataset-missing")
    assert (both.code, both.error["type"]) == (2, "dataset-given-twice")


def test_standard_input_is_checked_and_with_a_name_submitted(run: CommandLine) -> None:
    pipe(run, ROWS)
    said = run("check", "-", "--json")
    assert (said.code, said.document["rows"]["train"], said.document["source"]) == (0, 18, "-")
    pipe(run, b'{"text": "a"}\n')
    said = run("check", "-", "--json")
    assert (said.code, said.error["problems"][0]["file"], "/tmp" in said.err) == (2, "standard input", False)
    pipe(run, b'{"text": "a"}\n')
    said = run("submit", "-", "--task", "piped", "--json")
    assert (said.code, said.document["error"]["problems"][0]["file"]) == (2, "standard input")
    assert "/tmp" not in said.out + said.err
    assert run("submit", "-", "--json").error["type"] == "standard-input-without-task"
    pipe(run, ROWS)
    assert run("submit", "-", "--task", "piped", "--json").document["task"] == "piped"


def test_a_metric_is_checked_against_the_rows(run: CommandLine, rows: Path) -> None:
    assert run("check", rows, "--metric", "mcc", "--json").document["metric"] == "mcc"
    said = run("check", rows, "--metric", "acuracy", "--json")
    assert (said.code, said.error["metric"], said.error["guess"]) == (2, "acuracy", " Did you mean accuracy?")
    assert run("check", rows, "--metric", "spearman").code == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("tasks", "show", "stt2"), "sst2"),
        (("versions", "sst"), "sst2"),
        (("predict", "ssst2", "--text", "x"), "sst2"),
        (("tasks", "delete", "sts-b", "--dry-run"), "stsb"),
    ],
)
def test_a_task_that_there_is_not_is_told_with_the_one_that_was_meant(
    run: CommandLine, words: Sequence[str], meant: str
) -> None:
    said = run(*words)
    assert (said.code, f"Did you mean {meant}?" in said.err) == (3, True), said.err


def test_a_job_that_there_is_not_is_told_with_the_task_that_was_meant(run: CommandLine, rows: Path) -> None:
    run("submit", rows)
    said = run("jobs", "show", "mods")
    assert (said.code, "Did you mean moods?" in said.err) == (3, True), said.err


def test_an_init_that_there_is_not_is_told_with_the_one_that_was_meant(run: CommandLine, rows: Path) -> None:
    for init, meant in (("stt2", "sst2"), ("ranom", "random")):
        said = run("submit", rows, "--init", init)
        assert (said.code, f"Did you mean {meant}?" in said.err) == (2, True), said.err
    assert "Did you mean" not in run("submit", rows, "--init", "unlike-anything").err


def commands(group: click.Group) -> Iterator[tuple[click.Group, click.Context]]:
    context = click.Context(group, info_name=group.name or "onboard", terminal_width=80)
    yield group, context
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from commands(command)


def test_no_line_of_help_is_cut() -> None:
    root: Any = typer.main.get_command(app)
    for group, context in commands(root):
        assert not re.search(r"\w\.\.\.", group.get_help(context))


def shown(renderable: Any, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=True, color_system=None).print(renderable)
    return stream.getvalue()


def test_versions_fit_80_columns(tiny_services: Services, tiny_base: Base) -> None:
    metrics = {"validation": {"accuracy": {"value": 0.75}}, "test": None}
    for weak in (True, False):
        add_version(tiny_services, tiny_base, "reviews", ("no", "yes"), ("no", "yes"), metrics=metrics, weak=weak)
    lines = shown(versions_table(versions_page(tiny_services.database, "reviews", 9)), 80).splitlines()
    assert re.split(r"  +", lines[0].strip()) == ["version", "result", "init", "digest", "published (UTC)"]
    assert max(map(len, lines)) <= 80
    assert {"v1 weak", "v2", "latest", "accuracy 0.750", "on validation", "hypernetwork v1"} <= {
        cell for line in lines for cell in re.split(r"  +", line.strip())
    }


def test_what_fits_no_table_is_a_paragraph_and_nothing_is_cut() -> None:
    row = ("a" * 30, "[b]" * 20, "c" * 40)
    text = shown(table(("one", "two", "three"), [row]), 60)
    assert "…" not in text
    assert "".join(text.split()).count("[b]") == 20
