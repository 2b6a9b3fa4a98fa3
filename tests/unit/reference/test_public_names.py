"""The public Python names: documented one by one, each with a docstring of its own, typed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import onboard
from reference.public_names import MODULES, PAGE, own_docstring, page, public_names


def test_the_page_lists_the_public_names_as_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "after a change: python -m reference.public_names"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert [public.name for public in public_names(module) if not public.docstring] == []


def test_what_python_writes_for_a_dataclass_is_no_docstring() -> None:
    from dataclasses import dataclass

    @dataclass
    class Silent:
        rows: int

    assert (Silent.__doc__ or "").startswith("Silent(rows: ")
    assert own_docstring(Silent) == ""


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(onboard.__file__).parent / "py.typed").is_file()
