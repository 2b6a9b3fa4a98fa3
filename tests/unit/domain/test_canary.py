"""The share of an alias's texts that its canary answers: how it is written, and which texts it means."""

from __future__ import annotations

import math

import pytest
from support.refusals import refused

from onboard.domain.canary import Canary, alias_tag, parse_share, require_share, share_text


@pytest.mark.parametrize(("given", "share"), [("10%", 0.1), (" 2.5 % ", 0.025), ("0%", 0.0), ("99.9%", 0.999)])
def test_a_share_is_a_percentage(given: str, share: float) -> None:
    assert parse_share(given) == pytest.approx(share)
    assert parse_share(share_text(share)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        ("10", "share-without-percent"),
        ("0.1", "share-without-percent"),
        ("100%", "share-of-everything"),
        ("101%", "share-out-of-range"),
        ("-5%", "share-not-a-percentage"),
        ("nan%", "share-not-a-percentage"),
        ("", "share-not-a-percentage"),
    ],
)
def test_other_shares_are_refused(given: str, type_: str) -> None:
    with refused(type_):
        parse_share(given)


@pytest.mark.parametrize("share", [math.nan, math.inf, -0.1, 10.0])
def test_a_number_that_is_not_a_fraction_is_refused(share: float) -> None:
    with refused("share-out-of-range"):
        require_share(share)


def test_a_text_keeps_its_version_and_a_greater_share_adds_texts() -> None:
    texts = [f"text {number}" for number in range(4000)]

    def answered(share: float, alias: str = "production") -> set[str]:
        return {text for text in texts if Canary(2, share).answers("mood", alias, text, None)}

    some, more = answered(0.1), answered(0.3)
    assert some == answered(0.1)
    assert some < more
    assert (len(some) / 4000, len(more) / 4000) == (pytest.approx(0.1, abs=0.02), pytest.approx(0.3, abs=0.03))
    assert some != answered(0.1, "latest")
    assert [text for text in texts[:35] if text in some][:1] == ["text 16"]  # the same in every release


def test_a_tag_names_version_and_canary() -> None:
    assert (alias_tag(3), alias_tag(3, 4, 0.1)) == ("v3", "v3+v4:0.1")
