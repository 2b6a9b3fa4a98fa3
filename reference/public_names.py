"""The public Python names and their docstrings, and docs/reference/python.md, which lists them.

After a change: python -m reference.public_names
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from onboard.contract.document import Document, Partial
from reference.cells import cell

MODULES: Final = (
    "onboard.client",
    "onboard.local",
    "onboard.client.local",
    "onboard.serving",
    "onboard.errors",
    "onboard.settings",
    "onboard.api.app",
    "onboard.model.importers",
    "onboard.testing",
    "onboard",
)
_COMMON: Final = (Document, Partial)  # members of every document, described once in the docstring of onboard.client
_MADE: Final = ("model_post_init",)  # made by pydantic
MOST_ARGUMENTS: Final = 9  # number of arguments shown of a call; its docstring describes the others
_VALUES: Final = {"__version__": "The release, as text."}
PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
_HEAD: Final = """\
# Python

The public API, generated from the docstrings. Every change of it is listed in the
[changelog](../../CHANGELOG.md). Everything else in the package is internal. The package is typed (`py.typed`).
See also [the client](../how-to/use-the-client.md) and [predictions](../how-to/predict.md#predict).
"""


@dataclass(frozen=True)
class PublicName:
    """A name, or a member of a class.

    Args:
        name: the name after its import; a call with its arguments.
        docstring: its docstring without inherited ones; empty if it has none.
    """

    name: str
    docstring: str

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring, on one line."""
        return " ".join(self.docstring.partition("\n\n")[0].split())


def public_names(module: ModuleType) -> Iterator[PublicName]:
    """Yield the names in `__all__` of a module. Classes are followed by their public members.

    A method that several classes share is listed with the last of them.
    """
    things = {name: getattr(module, name) for name in module.__all__}
    for name, thing in things.items():
        if not inspect.isclass(thing):
            yield PublicName(_call(name, thing), own_docstring(thing)) if callable(thing) else _value(name)
            continue
        yield PublicName(name if issubclass(thing, Exception) else _call(name, thing), own_docstring(thing))
        later = list(things.values())[list(things).index(name) + 1 :]
        for member, value in _members(thing, set(things.values())):
            if not any(inspect.isclass(other) and getattr(other, member, None) is value for other in later):
                yield PublicName(f"{name}.{_call(member, value)}", own_docstring(value))


def _value(name: str) -> PublicName:
    return PublicName(name, _VALUES.get(name, ""))


def page() -> str:
    """docs/reference/python.md."""
    return "\n".join([_HEAD, *map(_section, MODULES)])


def _section(name: str) -> str:
    module = importlib.import_module(name)
    about = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
    rows = [f"| `{public.name}` | {cell(public.summary)} |" for public in public_names(module)]
    return "\n".join([f"## `{name}`", "", about, "", "| name | meaning |", "|---|---|", *rows, ""])


def _members(thing: type, public: set[Any]) -> Iterator[tuple[str, Any]]:
    """Yield public methods and properties that a class or an unlisted parent class defines.

    Class methods that a class only overrides for a library are omitted.
    """
    ours = [parent for parent in thing.__mro__ if parent.__module__.startswith("onboard.")]
    theirs = [parent for parent in thing.__mro__ if parent not in ours]
    listed = [parent for parent in ours if parent is thing or (parent not in public and parent not in _COMMON)]
    members = {name: value for parent in reversed(listed) for name, value in vars(parent).items()}
    for name, value in members.items():
        is_hook = isinstance(value, classmethod) and any(hasattr(parent, name) for parent in theirs)
        is_member = inspect.isroutine(value) or isinstance(value, property)
        if not name.startswith("_") and name not in _MADE and is_member and not is_hook:
            yield name, value


def own_docstring(thing: Any) -> str:
    """The docstring of a class or a function; docstrings that Python generates or that are inherited are omitted."""
    docstring = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    made_by_dataclass = inspect.isclass(thing) and (docstring or "").startswith(f"{thing.__name__}(")
    return "" if made_by_dataclass else inspect.cleandoc(docstring or "")


def _call(name: str, thing: Any) -> str:
    """A name with its arguments; optional ones as `argument=…`."""
    if isinstance(thing, property):
        return name
    if inspect.isclass(thing) and issubclass(thing, Document):
        return _shown(name, list(thing.model_fields))
    function = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
    parameters = [
        _argument(parameter)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    return _shown(name, parameters)


def _shown(name: str, parameters: list[str]) -> str:
    shown = [*parameters[:MOST_ARGUMENTS], *(["…"] if len(parameters) > MOST_ARGUMENTS else [])]
    return f"{name}({', '.join(shown)})"


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return str(parameter).partition(":")[0]
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=…"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
