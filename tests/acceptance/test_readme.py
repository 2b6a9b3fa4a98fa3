"""What the documentation shows exists: commands, options, settings, links, make targets, codes of the checks."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.main import app
from onboard.settings import Settings

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4,}(\S.*)$", re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
COMMAND = typer.main.get_command(app)
SHELL = {"|", "||", "&&", ";", "&", ">", ">>", "<"}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").replace("\\\n", " ")


def shell_lines(page: Path) -> Iterator[str]:
    """Lines of fenced shell blocks and of indented ones, without prompts."""
    text = text_of(page)
    for language, block in FENCED.findall(text):
        if language in ("", "sh", "bash", "console"):
            yield from (line.strip().removeprefix("$ ") for line in block.splitlines())
    yield from (line.removeprefix("$ ") for line in INDENTED.findall(FENCED.sub("", text)))


def words_of(line: str) -> list[str]:
    """The words of the first command of a shell line: no comment, no redirection, no variables set before it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((index for index, word in enumerate(words) if word in SHELL), len(words))
    start = next((index for index, word in enumerate(words) if not re.match(r"[A-Z_]+=", word)), 0)
    return words[start:end]


def shown_commands() -> list[Any]:
    """Every `onboard …` line that a reader can paste."""
    return [
        pytest.param(words_of(line)[1:], id=f"{page.relative_to(ROOT)}: {line}")
        for page in PAGES
        for line in shell_lines(page)
        if re.match(r"([A-Z_]+=\S* )*onboard ", line) and "-->" not in line
    ]


def named_commands() -> list[Any]:
    """Every `onboard …` between backticks, which may leave arguments out."""
    return [
        pytest.param(words_of(span)[1:], id=f"{page.relative_to(ROOT)}: {span}")
        for page in PAGES
        for span in INLINE.findall(FENCED.sub("", text_of(page)))
        if span.startswith("onboard ") and "…" not in span
    ]


def leaf_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the words that are left."""
    command: Any = COMMAND
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def leaves(command: Any = COMMAND, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from leaves(child, (*path, name))


def test_the_documentation_shows_commands() -> None:
    assert len(shown_commands()) > 40
    assert len(named_commands()) > 10


@pytest.mark.parametrize("words", shown_commands())
def test_every_command_line_of_the_documentation_parses(words: list[str]) -> None:
    command, rest = leaf_of(words)
    assert not hasattr(command, "commands"), "a group of commands is not a command"
    with command.make_context(" ".join(words), rest):  # raises on unknown options and missing arguments
        pass


@pytest.mark.parametrize("words", named_commands())
def test_every_command_that_the_documentation_names_exists(words: list[str]) -> None:
    command, rest = leaf_of(words)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    assert {word for word in rest if word.startswith("-") and word != "-"} <= known


@pytest.mark.parametrize("path", list(leaves()), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0, result.exception
    assert "Usage" in result.output


def advised() -> list[Any]:
    """Every `onboard …` that the code's own messages, remedies and docstrings tell people to run."""
    commands = {}
    for path in sorted(file for room in ("onboard", "cli", "workers") for file in (ROOT / room).rglob("*.py")):
        for said in _strings(ast.parse(path.read_text(encoding="utf-8"))):
            for command in re.findall(r"(?:^|`|\(|: |or )onboard ([a-z][^`();,:]*)", said):
                commands[f"{path.relative_to(ROOT)}: {command}"] = command.replace("…", "").split()
    return [pytest.param(words, id=name) for name, words in commands.items()]


def _strings(tree: ast.AST) -> Iterator[str]:
    """String constants, and f-strings with X for every value."""
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


@pytest.mark.parametrize("words", advised())
def test_every_command_that_a_message_advises_exists(words: list[str]) -> None:
    command, rest = leaf_of(words)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    assert {word.rstrip(".") for word in rest if word.startswith("--")} <= known


def slug(heading: str) -> str:
    """The anchor that a heading gets on the web."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(FENCED.sub("", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = page if not name else page.parent / name
        headings = re.findall(r"^#+ (.+)$", text_of(there), re.MULTILINE) if there.suffix == ".md" else []
        if not there.exists() or (anchor and anchor not in map(slug, headings)):
            broken.append(target)
    assert broken == []


def test_every_setting_that_the_documentation_names_is_one_and_all_are_named() -> None:
    settings = {f"ONBOARD_{field.upper()}" for field in Settings.model_fields}
    named = {name for page in PAGES for name in re.findall(r"\bONBOARD_[A-Z_]+", text_of(page))}
    of_compose = set(re.findall(r"\$\{(ONBOARD_[A-Z_]+)", (ROOT / "docker-compose.yml").read_text(encoding="utf-8")))
    where_settings_are_read = {"ONBOARD_SECRETS_DIR"}
    assert named - of_compose == (settings | where_settings_are_read) - of_compose


def test_every_make_target_that_the_documentation_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|^ {4})make ([a-z]+)", text_of(page), re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


def test_every_import_that_the_documentation_shows_works() -> None:
    blocks = [block for page in PAGES for language, block in FENCED.findall(text_of(page)) if language == "python"]
    imported = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    assert imported
    for node in imported:
        module, names = importlib.import_module(node.module or ""), [alias.name for alias in node.names]
        missing = [name for name in names if not hasattr(module, name)]
        assert [name for name in missing if find_spec(f"{node.module}.{name}") is None] == []


@pytest.mark.parametrize(
    ("heading", "made_by"),
    [
        ("Errors", r"(?:\bProblem|UnreadableError|RowError|\.add)\("),
        ("Warnings", r"(?:\bFinding\(|\"code\":|\bcode=)"),
    ],
)
def test_the_codes_of_the_checks_are_documented_one_by_one(heading: str, made_by: str) -> None:
    section = (
        text_of(ROOT / "docs" / "reference" / "datasets.md").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    )
    documented = re.findall(r"^\| `([a-z0-9_]+)`", section, re.MULTILINE)
    rooms = [ROOT / "onboard" / room for room in ("data", "train")]  # what a training says of the rows, too
    source = "\n".join(path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py"))
    assert sorted(documented) == sorted(set(re.findall(made_by + r'\s*"([a-z0-9_]+)"', source)))
