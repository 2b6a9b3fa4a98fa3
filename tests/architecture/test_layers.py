"""Imports go one way, downwards; the command line stays light; modules stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("torch", "transformers", "sklearn", "scipy", "pyarrow", "celery", "fastapi")

# From the top down: a module may import what stands in a lower row, and its own room.
LAYERS = (
    # programs: for people, for jobs, for notebooks
    ("cli", "workers", "onboard.local", "onboard.client.local", "onboard.__main__"),
    ("onboard.api", "onboard.client", "onboard.testing"),  # HTTP from the inside and from the outside; fakes
    ("onboard.jobs", "onboard.pipeline", "onboard.serving"),  # the use cases of a job and of an answer
    ("onboard.versions",),  # the use cases of what has been learned
    ("onboard.hypernetworks", "onboard.operations", "onboard.broker", "onboard.making"),  # what outlives one job
    # What stages compute, arrays in and arrays out; bases are found and loaded.
    ("onboard.probe", "onboard.train", "onboard.guard", "onboard.evaluate", "onboard.report", "onboard.bases"),
    ("onboard.model",),  # torch, and nothing of jobs or tasks
    ("onboard.registry", "migrations", "onboard.storage"),  # the only SQL; bytes by digest
    ("onboard.data",),  # rows and their checks
    # Plain dataclasses; every document that leaves the process, once; numbers about numbers.
    (
        "onboard.domain",
        "onboard.contract",
        "onboard.statistics",
        "onboard.errors",
        "onboard.messages",
        "onboard.settings",
        "onboard",
    ),
)
# Rooms of one row do not import one another, except in these: programs, the lowest row, and the registry, which
# migrates itself.
OPEN_ROWS = (LAYERS[0], LAYERS[-1], LAYERS[-3])
PROGRAMS = ("onboard.__main__",)  # it runs commands, and nothing imports it
STAGES = ("onboard.probe", "onboard.train", "onboard.evaluate", "onboard.guard")


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("onboard", "workers", "cli", "migrations"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imports(path: Path, *, at_import_time: bool = False) -> tuple[str, ...]:
    tree, names = ast.parse(path.read_text()), []
    for node in _at_import_time(tree) if at_import_time else ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def _at_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported: not inside functions, not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _at_import_time(node)


def within(name: str, room: str) -> bool:
    return name == room or (name.startswith(room + ".") and room != "onboard")


def layer_of(name: str) -> tuple[int, str] | None:
    """The row and the room that a module belongs to: of rooms within rooms, the innermost."""
    rooms = [(len(room), level, room) for level, row in enumerate(LAYERS) for room in row if within(name, room)]
    return max(rooms)[1:] if rooms else None


def imported_modules(path: Path, names: Iterable[str]) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in the file."""
    known = set(names)
    for imported in imports(path):
        yield from [name for name in (imported, imported.rpartition(".")[0]) if name in known][:1]


def test_every_module_belongs_to_a_layer() -> None:
    assert [name for name, _ in modules() if layer_of(name) is None] == []


def test_every_room_of_the_layers_is_there() -> None:
    names = {name for name, _ in modules()}
    assert [room for row in LAYERS for room in row if room not in names] == []


def test_imports_go_downwards_only() -> None:
    wrong = []
    paths = dict(modules())
    for name, path in paths.items():
        here = layer_of(name)
        for imported in imported_modules(path, paths):
            there = layer_of(imported)
            if here is None or there is None or here[1] == there[1]:
                continue
            beside = there[0] == here[0] and LAYERS[here[0]] not in OPEN_ROWS
            if there[0] < here[0] or beside:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def test_nothing_in_the_package_imports_the_command_line_or_the_workers() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        if name.startswith("onboard.") and name not in PROGRAMS
        for imported in imports(path)
        if within(imported, "cli") or within(imported, "workers")
    ]
    assert wrong == []


def test_no_modules_import_one_another_in_a_circle() -> None:
    paths = dict(modules())
    waiting = {name: set(imported_modules(path, paths)) - {name} for name, path in paths.items()}
    while free := [
        name
        for name, needed in waiting.items()
        if not needed & waiting.keys() or not any(name in others for others in waiting.values())
    ]:
        for name in free:
            del waiting[name]
    assert sorted(waiting) == []


@pytest.mark.parametrize("room", [*STAGES, "onboard.model", "onboard.data", "onboard.domain"])
def test_whoever_computes_knows_neither_registry_nor_store_nor_queue(room: str) -> None:
    outside = (
        "onboard.registry",
        "onboard.storage.artifacts",
        "onboard.jobs.doorbell",
        "sqlalchemy",
        "celery",
    )
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        if within(name, room)
        for imported in imports(path)
        if any(within(imported, module) for module in outside)
    ]
    assert wrong == []


def test_the_domain_knows_nothing_but_itself_and_the_errors() -> None:
    allowed = ("onboard.domain", "onboard.errors", "onboard.messages", "onboard.__version__", *sys.stdlib_module_names)
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        if within(name, "onboard.domain")
        for imported in imports(path)
        if not any(within(imported, module) for module in allowed)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("room", "ours", "others"),
    [
        (
            "onboard.client",
            ("onboard.contract", "onboard.domain", "onboard.errors", "onboard.messages"),
            ("httpx", "numpy", "pyarrow"),
        ),
        (
            "onboard.contract",
            ("onboard.domain", "onboard.errors", "onboard.messages"),
            ("numpy", "pydantic", "typing_extensions"),
        ),
    ],
)
def test_what_is_shipped_alone_as_the_client_knows_nothing_else(
    room: str, ours: Sequence[str], others: Sequence[str]
) -> None:
    allowed = (room, *ours, *others, "pydantic", "onboard.__version__", *sys.stdlib_module_names)
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        if within(name, room) and not within(name, "onboard.client.local")
        for imported in imports(path)
        if not any(within(imported, module) for module in allowed)
    ]
    assert wrong == []


def test_the_client_brings_in_neither_the_services_registry_nor_torch() -> None:
    outside = ("onboard.registry", "onboard.api", "onboard.settings", "sqlalchemy", "numpy", *HEAVY)
    assert imported_with("onboard.client", outside) == []


def test_only_the_client_and_the_door_itself_write_paths_of_the_http_door() -> None:
    """A docstring may name one; `/v1/…` as a text that something is asked by may not."""
    wrong = [
        f"{name}:{node.lineno}"
        for name, path in modules()
        if not within(name, "onboard.client") and not within(name, "onboard.api")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and str(node.value).startswith(("/v1/", "/healthz", "/readyz"))
    ]
    assert wrong == []


def test_doors_only_open_and_leave_transactions_to_the_use_cases() -> None:
    begins = ("read", "glance", "snapshot", "write", "write_again")
    wrong = [
        f"{name}:{node.lineno}"
        for name, path in modules()
        if within(name, "cli") or within(name, "onboard.api")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in begins and ast.unparse(node.value).endswith("database")
    ]
    assert wrong == []


def test_sql_is_spoken_in_the_registry_only() -> None:
    speakers = {name for name, path in modules() for module in imports(path) if within(module, "sqlalchemy.select")}
    assert {name for name in speakers if not within(name, "onboard.registry")} == set()


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        name
        for name, path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") and ast.unparse(node.value) == "os"
    }
    assert readers - {"onboard.settings"} == set()


LIGHT = (
    "cli.main",
    "onboard",
    "onboard.jobs.submit",
    "onboard.jobs.estimate",
    "onboard.versions.promote",
    "onboard.errors",
    "onboard.settings",
    "onboard.jobs.doorbell",
    "onboard.registry.services",
)


@pytest.mark.parametrize("module", LIGHT)
def test_what_the_command_line_needs_imports_nothing_heavy(module: str) -> None:
    assert imported_with(module, HEAVY) == []


def imported_with(module: str, names: Sequence[str]) -> list[str]:
    """Which of the names come in with a module, in a process of its own."""
    program = f"import sys, {module}; print(*[name for name in {tuple(names)!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.split()


@pytest.mark.parametrize("package", ["onboard.domain", "onboard.registry", "onboard.data"])
def test_light_packages_import_nothing_heavy_at_import_time(package: str) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        if within(name, package)
        for imported in imports(path, at_import_time=True)
        if any(within(imported, heavy) for heavy in HEAVY)
    ]
    assert wrong == []


def test_no_room_for_odds_and_ends() -> None:
    refused = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [name for name, _ in modules() if refused & set(name.split("."))] == []
