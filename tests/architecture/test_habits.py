"""How long functions are, how many arguments they take, and names that would say nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ("onboard", "cli", "workers")
MOST_ARGUMENTS, MOST_LINES = 7, 40
SAY_NOTHING = {"each", "found", "wanted", "kept", "told"}  # what of? a noun of the field says it

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(*packages: str) -> Iterator[tuple[str, Function]]:
    """Every function, and where it stands."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, Function):
                    yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def arguments(function: Function) -> list[str]:
    """Names of its arguments, without self."""
    taken = function.args
    names = [argument.arg for argument in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def local_names(function: Function) -> Iterator[str]:
    """What it binds: arguments, assignments, targets of loops and comprehensions."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_what_takes_more_than_seven_arguments_is_a_thing_with_a_name() -> None:
    many = [where for where, function in functions(*PRODUCT) if len(arguments(function)) > MOST_ARGUMENTS]
    assert len(many) <= 3, many  # fewer every time one is named


def test_a_function_has_one_thing_to_say() -> None:
    long = [where for where, function in functions(*PRODUCT) if lines(function) > MOST_LINES]
    assert len(long) <= 2, long  # fewer every time one is parted


@pytest.mark.parametrize("package", [*PRODUCT, "bench", "tests"])
def test_local_names_say_what_they_hold(package: str) -> None:
    silent = [
        f"{where}: {', '.join(names)}"
        for where, function in functions(package)
        if lines(function) > 3 and (names := sorted(SAY_NOTHING.intersection(local_names(function))))
    ]
    assert silent == []
