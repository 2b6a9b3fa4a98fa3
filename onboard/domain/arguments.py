"""Errors in the words of a program: options of the command line become arguments of a call.

Errors are made for the command line. Whoever calls `onboard.client` has arguments: `--text-field NAME` is
`text_field="NAME"` there.
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
    r"onboard [a-z][^.,;:]*"  # a command without a counterpart stays as a whole
    r"|(?P<flag>--[a-z][a-z-]*)"
    r"(?: (?P<value>[A-Z][A-Z0-9,…]*\b|\d+\b|(?!is\b|names\b|says\b|asks\b|or\b|and\b|too\b)[a-z0-9_+@-]+(?![\w,])))?"
)


def in_arguments(text: str) -> str:
    """A sentence with arguments in place of options; what has no counterpart stays."""
    for command, call in _CALLS:
        text = command.sub(call, text)
    return _OPTION.sub(_argument, text)


@contextmanager
def speaking_of_arguments() -> Iterator[None]:
    """Let errors that pass speak of arguments."""
    try:
        yield
    except OnboardError as error:
        error.message, error.remedy = in_arguments(error.message), in_arguments(error.remedy)
        error.args = (error.message,)  # which a traceback shows
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
