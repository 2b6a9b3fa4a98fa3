"""Render a self-contained HTML page: no script, no network, all user content escaped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onboard.report.page import page_of
from onboard.report.terms import TERMS

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def render(document: Mapping[str, Any]) -> str:
    """Render the HTML page of a job's document; every key may be absent or null."""
    return environment().get_template("report.html").render(page=page_of(document))


@cache
def environment() -> Environment:
    """Return the templates of the report."""
    return make_environment()


def make_environment(*folders: Path) -> Environment:
    """Return the templates in these folders and those of the report; values are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(code=code, explained=explained)
    return environment


def explained(cell: str) -> Markup:
    """Return a cell or a name, with an explanation if it is a known term."""
    from markupsafe import Markup, escape

    explanation = TERMS.get(cell)
    return Markup('<abbr title="{}" tabindex="0">{}</abbr>').format(explanation, cell) if explanation else escape(cell)


def code(sentence: str) -> Markup:
    """Format text between backticks as code; everything is escaped. An unmatched backtick stays."""
    from markupsafe import Markup, escape

    # no line break inside "73–87%" and "n = 30"
    sentence = sentence.replace("–", "\u2060–\u2060").replace(" = ", "\u00a0=\u00a0")
    parts = sentence.split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    wrapped = (Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts))
    return Markup("").join(wrapped)
