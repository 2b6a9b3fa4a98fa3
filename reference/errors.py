"""Every error with its exit code and HTTP status, and what is said where it is raised, read from the source."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from onboard import errors
from onboard.errors import OnboardError
from reference.cells import cell

ROOT: Final = Path(__file__).parent.parent
_ROOMS: Final = ("onboard", "cli", "workers")


def page() -> str:
    """The page: the tree, then every message by its kind."""
    kinds = [kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), OnboardError)]
    kinds.sort(key=lambda kind: (kind.exit_code, kind.http_status, kind.__name__))
    said = sorted(set(messages()))
    parts = [
        "# Errors",
        "",
        "Generated from the source. Each error has a message and a remedy. `--json` and HTTP problem documents contain "
        "`code`, `message`, `remedy` and data. `…` stands for a value. The errors that `onboard check` reports are "
        "listed under [datasets](datasets.md#errors).",
        "",
        "| code | class | exit | HTTP | retryable | meaning |",
        "|---|---|---|---|---|---|",
        *(_row(kind) for kind in kinds),
        "",
    ]
    for kind in kinds:
        rows = [f"| {cell(message)} | {cell(remedy)} |" for name, message, remedy in said if name == kind.__name__]
        if rows:
            parts += [f"## {kind.__name__}", "", "| message | remedy |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def messages() -> Iterator[tuple[str, str, str]]:
    """Class, message and remedy of every place that makes an error with a sentence of its own."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for room in _ROOMS for path in (ROOT / room).rglob("*.py")]
    constants = _constants(trees)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors.__all__:
                texts = [_text(argument, constants) for argument in node.args[:2]]
                if texts and texts[0].strip("… "):
                    yield node.func.id, texts[0], texts[1] if len(texts) > 1 else ""


def _constants(trees: Sequence[ast.Module]) -> dict[str, str]:
    """Texts that modules have names for, where a name means one text."""
    texts: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.setdefault(target.id, set()).add(node.value.value)
    return {name: next(iter(values)) for name, values in texts.items() if len(values) == 1}


def _text(node: ast.expr, constants: Mapping[str, str]) -> str:
    """A text of the source, `…` for every value in it."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "…")
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, constants)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, constants) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, constants) + _text(node.right, constants)
    return "…"


def _row(kind: type[OnboardError]) -> str:
    meaning = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    again = "yes" if kind.retryable else "no"
    facts: list[Any] = [f"`{kind.code}`", f"`{kind.__name__}`", kind.exit_code, kind.http_status, again, cell(meaning)]
    return f"| {' | '.join(map(str, facts))} |"
