"""How texts and names of any length are shown in a line."""

from __future__ import annotations

import pytest

from onboard.data.previews import beginning, both_ends, preview_texts


def test_a_pair_takes_as_much_room_as_a_text() -> None:
    assert preview_texts(["a" * 100]) == "a" * 79 + "…"
    assert preview_texts(["a" * 100, "b" * 100]) == f"{'a' * 39}… | {'b' * 39}…"
    assert preview_texts(["a" * 40, "b"]) == f"{'a' * 40} | b"


def test_what_cannot_be_printed_is_not() -> None:
    assert beginning("a\nb\x1bc", 10) == "a b c"


@pytest.mark.parametrize(
    ("name", "shown"), [("abcdefg", "abcdefg"), ("abcdefgh", "abc…fgh"), ("a" * 9 + "b", "aaa…aab")]
)
def test_both_ends_of_a_name_are_kept(name: str, shown: str) -> None:
    assert both_ends(name, 7) == shown
