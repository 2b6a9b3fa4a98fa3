"""The grammar of names and references."""

from __future__ import annotations

import pytest
from support.refusals import refused

from onboard.domain.moment import to_iso
from onboard.domain.names import Reference, require_alias, require_name
from onboard.errors import InputError


@pytest.mark.parametrize("text", ["", "Colours", "a/b", "../x", "a@", "a@B", "a@v1@v2", "a" * 65, "a\n", "-a"])
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Reference.parse(text)


@pytest.mark.parametrize("text", ["sst2@v3", "sst2@latest", "my-task_2@production"])
def test_references_survive_printing(text: str) -> None:
    assert str(Reference.parse(text)) == text


def test_a_bare_task_means_its_latest_version() -> None:
    assert Reference.parse("sst2") == Reference("sst2", alias="latest", version=None)


def test_v0_is_a_name_and_v1_a_number() -> None:
    assert Reference.parse("a@v0") == Reference("a", alias="v0")
    assert Reference.parse("a@v1") == Reference("a", alias=None, version=1)
    assert require_alias("v0") == "v0"
    with refused("alias-is-version-number"):
        require_alias("v1")


def test_a_name_of_64_characters_is_the_longest() -> None:
    assert require_name("a" * 64) == "a" * 64
    with pytest.raises(InputError):
        require_name("a" * 65)


def test_moments_are_told_in_utc_with_milliseconds() -> None:
    assert to_iso(0.5) == "1970-01-01T00:00:00.500Z"
    assert to_iso(None) is None
