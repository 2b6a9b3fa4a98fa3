"""The command lines of the benches, and where datasets, results and pages lie."""

from __future__ import annotations

import shlex
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Sizes = TypeVar("Sizes", bound="DataclassInstance")
Thing = TypeVar("Thing")

CHECKOUT: Final = Path(__file__).parents[2]
DATA: Final = CHECKOUT.parent / "shared" / "data"
RESULTS: Final = CHECKOUT / "bench" / "results"
PAGES: Final = RESULTS  # tables are next to their numbers; docs/results summarizes them
WORK: Final = CHECKOUT / "build" / "bench"  # partial results until a bench has ended


def command_line(description: str | None, name: str = "", rows: str = "json") -> ArgumentParser:
    """The options of every bench: where its numbers and its page go.

    Args:
        description: for --help.
        name: of its files; without one nothing is written unless it is requested.
        rows: ending of the file with the numbers.
    """
    parser = ArgumentParser(description=description, formatter_class=RawDescriptionHelpFormatter)
    output, table = (RESULTS / f"{name}.{rows}", PAGES / f"{name}.md") if name else (None, None)
    parser.add_argument("--output", type=Path, default=output, help="where the numbers are written")
    parser.add_argument("--table", type=Path, default=table, help="where the page is written")
    return parser


def asked_sizes(parser: ArgumentParser, known: Sizes, arguments: Sequence[str] | None) -> tuple[Namespace, Sizes]:
    """The request of a command line, an option for every field of `known` added; and these fields."""
    for field in fields(known):
        value = getattr(known, field.name)
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(value), default=value)
    asked = parser.parse_args(arguments)
    return asked, replace(known, **{field.name: getattr(asked, field.name) for field in fields(known)})


def add_shared(parser: ArgumentParser) -> None:
    """The options of a bench whose rows several processes make, and that goes on where it was stopped."""
    parser.add_argument("--threads", type=int, default=1, help="of this process")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="I/K", help="this process's part of the work")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page")


def require_names(parser: ArgumentParser, kind: str, names: Sequence[str], valid: Collection[str]) -> None:
    """End the command with an error if a name is not one of the valid ones; `kind` is what they name."""
    if unknown := [name for name in names if name not in valid]:
        parser.error(f"there is no {kind} {unknown[0]}; there are {', '.join(valid)}")


def part(words: str) -> tuple[int, int]:
    """The `--part` of a command line: "1/2" is the first of two. Raises ArgumentTypeError for anything else."""
    index, _, count = words.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise ArgumentTypeError(f"{words!r} is no part; the first of two is 1/2")
    return int(index), int(count)


def part_of(things: Sequence[Thing], index: int, count: int) -> Sequence[Thing]:
    """Every `count`-th of them, from the `index`-th (from 1) on."""
    return things[index - 1 :: count]


def deadline(hours: float | None, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Whether so many hours have passed since now; None lets everything end."""
    begun = clock()
    return lambda: hours is not None and clock() - begun >= 3600 * hours


def command_of(name: str, words: Sequence[str]) -> str:
    """The command that measures the same again, wherever it writes, also where this one only writes the page."""
    places = {"--output", "--table"}
    same = [word for before, word in zip(["", *words], words, strict=False) if not {before, word} & places]
    same = [word for word in same if word != "--report"]
    return f"python -m bench.{name} {shlex.join(same)}".rstrip()


def datasets_there(folder: Path = DATA, option: str = "", suites: Sequence[str] = ()) -> bool:
    """Whether they are; where they are not, it is said, and which option names their folder.

    Args:
        suites: folders in it that are needed.
    """
    there = all(place.is_dir() for place in (folder, *(folder / suite for suite in suites)))
    if not there:
        remedy = f"; name their folder: {option} DIR" if option else ""
        print(f"skipped: the datasets are not here ({folder}){remedy}")
    return there
