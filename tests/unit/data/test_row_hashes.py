from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onboard.data.hashes import in_sorted, merged, row_hashes, unseen
from onboard.domain.dataset import Example

HASHES = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.integers(-9, 9)), st.sets(st.integers(-9, 9)))
def test_values_are_found_in_a_sorted_array(values: list[int], many: set[int]) -> None:
    among = np.array(sorted(many), dtype=np.int64)
    standing = in_sorted(np.array(values, dtype=np.int64), among)
    assert standing.tolist() == [value in many for value in values]


@given(st.lists(st.sets(HASHES | st.integers(-9, 9))))
def test_sorted_arrays_are_merged_without_what_is_repeated(parts: list[set[int]]) -> None:
    both = merged(np.array(sorted(part), dtype=np.int64) for part in parts)
    assert both.tolist() == sorted(set().union(*parts))


def test_known_and_repeated_rows_are_left_out() -> None:
    rows = [Example(text, None, "a") for text in ("one", "two", "One ", "three", "two")]
    known = np.sort(np.array(row_hashes([Example("THREE", None, "b"), Example("four", None, "b")]), dtype=np.int64))
    assert unseen(rows, known) == rows[:2]
