"""Counts and sizes as people read them."""

from __future__ import annotations

from onboard.domain.counting import size_text


def test_a_size_is_shown_in_its_largest_unit() -> None:
    shown = {
        0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1 kB", 12_040: "12 kB", 1_500_000: "1.5 MB",
        999_960: "1 MB", 10**9: "1 GB", 2_345 * 10**12: "2,345 TB",
    }  # fmt: skip
    assert {size: size_text(size) for size in shown} == shown
