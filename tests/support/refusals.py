"""Expectations of errors: type and facts. `tests/unit/test_messages.py` alone checks the wording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from onboard.errors import OnboardError, type_in


@contextmanager
def refused(type_: str, **facts: object) -> Iterator[pytest.ExceptionInfo[OnboardError]]:
    """Hold that the block raises the error of this type with these facts, or a dataset's error with such a problem."""
    with pytest.raises(OnboardError) as caught:
        yield caught
    require(caught.value.to_json(), type_, **facts)


def require(document: Mapping[str, Any], type_: str, **facts: object) -> None:
    """Hold that an error's document, printed, sent or stored, has this type and these facts."""
    problems = document.get("problems") or []
    found = [_with_type(part) for part in (document, *problems) if isinstance(part, Mapping)]
    expected = {"type": type_, **facts}
    assert any(all(part.get(name) == value for name, value in expected.items()) for part in found), (
        f"expected {expected}, got {found}"
    )


def type_of(document: Mapping[str, Any]) -> str:
    """The type of an error's document, which HTTP writes as a URI."""
    return type_in(document["type"]) or str(document["type"])


def _with_type(part: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "type": type_of(part)} if "type" in part else dict(part)
