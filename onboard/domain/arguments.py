"""Rewrite errors for Python callers: command-line options become arguments.

Errors are written for the command line. In `onboard.client`, `--text-field NAME` becomes `text_field="NAME"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from onboard.domain.evaluation import Evaluation
from onboard.domain.submission import Submission, fields_of
from onboard.errors import OnboardError

_ARGUMENTS: Final = {field.flag: field for declaration in (Submission, Evaluation) for field in fields_of(declaration)}
_CALLS: Final = (
    (re.compile(r"onboard submit(?: --dataset)? FILE"), "submit(FILE)"),
    (re.compile(r"onboard check FILE"), "check(FILE)"),
)
_OPTION: Final = re.compile(
    r"onboard [a-z][^.,;:]*"  # keep commands, which have no counterpart
    r"|(?P<flag>--[a-z][a-z-]*)"
    r"(?: (?P<value>[A-Z][A-Z0-9,…]*\b|\d+\b|(?!is\b|names\b|says\b|asks\b|or\b|and\b|too\b)[a-z0-9_+@-]+(?![\w,])))?"
)


def in_arguments(text: str) -> str:
    """Replace options in a sentence by arguments; keep everything without a counterpart."""
    for command, call in _CALLS:
        text = command.sub(call, text)
    return _OPTION.sub(_argument, text)


@contextmanager
def speaking_of_arguments() -> Iterator[None]:
    """Rewrite errors that leave the block."""
    try:
        yield
    except OnboardError as error:
        error.message, error.remedy = in_arguments(error.message), in_arguments(error.remedy)
        error.args = (error.message,)  # shown in tracebacks
        for problem in error.data.get("problems", ()):
            problem.update({
                key: in_arguments(problem[key]) for key in ("message", "remedy") if isinstance(problem.get(key), str)
            })  # fmt: skip
        raise


def _argument(option: re.Match[str]) -> str:
    field = _ARGUMENTS.get(option["flag"] or "")
    if field is None:
        return option[0]
    value = option["value"]
    if value is None:
        return f"{field.name}=True" if field.type is bool else field.name
    if field.type is bool:
        return f"{field.name}=True {value}"
    return f"{field.name}={value}" if value.isdecimal() else f'{field.name}="{value}"'
