"""Sizes and limits as people type them."""

from __future__ import annotations

import pytest
from support.refusals import refused

from onboard.domain.quota import MOST, Use, read_limit, read_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("500000", 500_000), ("20MB", 20_000_000), ("20 mb", 20_000_000), ("1.5GB", 1_500_000_000),
        ("2GiB", 2 << 30), ("0.125k", 125), ("7B", 7), ("3T", 3 * 10**12), (" 1GB ", 10**9), (str(MOST), MOST),
    ],
)  # fmt: skip
def test_a_size_is_read_exactly(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "-1", "1.5", "1.5B", "1iB", "1,5GB", "1e9", "10PB", "9007199254740992", "9" * 17, "٣", "1GB2"]
)
def test_anything_else_is_not_a_size(text: str) -> None:
    with refused("size-invalid"):
        read_size(text)


def test_a_limit_is_a_number_of_jobs_a_size_or_none() -> None:
    assert (read_limit("0", "max_jobs"), read_limit("1GB", "max_bytes")) == (0, 10**9)
    assert read_limit("none", "max_jobs") is read_limit("none", "max_bytes") is None
    for text in ("", "1.5", "few", "²", "--1", "1GB"):
        with refused("job-limit-invalid"):
            read_limit(text, "max_jobs")
    with refused("quota-negative"):
        read_limit("-2", "max_jobs")


def test_nothing_is_left_of_a_limit_that_was_lowered_below_the_use() -> None:
    use = Use("shop", queued=3, running=1, max_jobs=2, bytes=90, max_bytes=50)
    assert (use.jobs, use.jobs_left, use.bytes_left) == (4, 0, 0)
