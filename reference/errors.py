"""The page of all errors by type: message, remedy, data, exit code and HTTP status."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from onboard import errors
from onboard.errors import OnboardError
from onboard.messages import MESSAGES
from reference.cells import cell

ROOT: Final = Path(__file__).parent.parent
_ROOMS: Final = ("onboard", "cli", "workers")


def page() -> str:
    """Return the page: the classes, then every type by class."""
    kinds = sorted(error_classes().values(), key=lambda kind: (kind.exit_code, kind.http_status, kind.__name__))
    types: dict[str, list[str]] = defaultdict(list)
    for type_, names in classes_of_types().items():
        for name in names:
            types[name].append(type_)
    parts = [
        "# Errors",
        "",
        "Generated from the code. `code` says how to handle an error, and `type` identifies it. Neither ever changes "
        "its meaning. `--json` prints both with `message`, `remedy` and data; HTTP problems have the type "
        "`urn:onboard:error:TYPE`. In a message, `{name}` stands for a value. The errors and warnings of a dataset are "
        "listed under [datasets](datasets.md#errors).",
        "",
        "| code | class | exit | HTTP | retryable | meaning |",
        "|---|---|---|---|---|---|",
        *(_row(kind) for kind in kinds),
        "",
    ]
    for kind in kinds:
        rows = [_message(type_) for type_ in sorted(types[kind.__name__])]
        if rows:
            parts += [f"## {kind.__name__}", "", "| type | message | remedy |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def error_classes() -> dict[str, type[OnboardError]]:
    """All classes of errors by name."""
    kinds = {name: getattr(errors, name) for name in errors.__all__}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, OnboardError)}


@cache
def classes_of_types() -> Mapping[str, frozenset[str]]:
    """The names of the classes that each type is raised as."""
    found: dict[str, set[str]] = defaultdict(set)
    for place in raised():
        if place.type_ in MESSAGES:
            found[place.type_].add(place.kind)
    return {type_: frozenset(names) for type_, names in found.items()}


class Place:
    """A place in the source that makes an error.

    Args:
        kind: name of the class.
        call: the call of the class.
        where: file and line.
    """

    def __init__(self, kind: str, call: ast.Call, where: str) -> None:
        self.kind = kind
        self.where = where
        first = call.args[0] if call.args else None
        self.type_ = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        self.facts = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
        # **facts, with keys that the source does not name
        self.is_open = any(keyword.arg is None for keyword in call.keywords)


def raised() -> Iterator[Place]:
    """Yield every call of an error class in the source."""
    for path in sorted(path for room in _ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors.__all__:
                yield Place(node.func.id, node, f"{path.relative_to(ROOT)}:{node.lineno}")


def _message(type_: str) -> str:
    message = MESSAGES[type_]
    remedy = "depends on the case" if message.remedy == "{remedy}" else message.remedy
    return f"| `{type_}` | {cell(message.text)} | {cell(remedy)} |"


def _row(kind: type[OnboardError]) -> str:
    meaning = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    again = "yes" if kind.retryable else "no"
    facts: list[Any] = [f"`{kind.code}`", f"`{kind.__name__}`", kind.exit_code, kind.http_status, again, cell(meaning)]
    return f"| {' | '.join(map(str, facts))} |"
