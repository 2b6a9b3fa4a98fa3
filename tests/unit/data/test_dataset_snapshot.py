"""Snapshots: bytes that hold the same rows have the same digest, and what is loaded is what was saved."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.formats import source
from onboard.data.hashes import row_hashes
from onboard.data.snapshot import digest, load, save
from onboard.domain.dataset import Dataset, Example, example_key, in_canonical_order, in_canonical_rows
from onboard.errors import DamagedError, DatasetError

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
labels = st.one_of(
    texts, st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)
)
examples = st.builds(Example, texts, st.none() | texts, labels)
splits = st.lists(examples, max_size=6).map(tuple)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    train, validation, test = draw(splits), draw(splits), draw(splits)
    labels = in_canonical_order(row.label for row in (*train, *validation, *test))
    return Dataset("classification", labels, train, validation, test)


def canonical(dataset: Dataset) -> list[list[str]]:
    return [sorted(map(example_key, rows)) for rows in (dataset.train, dataset.validation, dataset.test)]


@settings(max_examples=60, deadline=None)
@given(datasets(), st.randoms(use_true_random=False))
def test_the_digest_ignores_the_order_of_rows_and_survives_saving(dataset: Dataset, draw: random.Random) -> None:
    shuffled = list(dataset.train)
    draw.shuffle(shuffled)
    other = replace(dataset, train=tuple(shuffled))
    assert digest(other) == digest(dataset)
    assert save(other) == save(dataset)
    assert save(dataset)[4:8] == bytes(4)  # gzip's time of writing
    loaded = load(save(dataset))
    assert digest(loaded) == digest(dataset)
    assert canonical(loaded) == canonical(dataset)
    assert list(map(example_key, loaded.train)) == list(map(example_key, in_canonical_rows(dataset.train)))


@settings(max_examples=60, deadline=None)
@given(datasets(), datasets())
def test_different_rows_have_different_digests(one: Dataset, other: Dataset) -> None:
    same = (canonical(one), list(map(repr, one.labels))) == (canonical(other), list(map(repr, other.labels)))
    assert (digest(one) == digest(other)) == same


@pytest.mark.parametrize(
    "change",
    [
        {"train": (Example("a", None, 1),)},
        {"train": (Example("a", None, True), Example("b", None, 1))},
        {"labels": (2, 1)},
        {"kind": "regression"},
        {"low": 0.0},
        {"test": (Example("c", None, 1),)},
        {"train": (Example("a", "", 1), Example("b", None, 1))},
    ],
)
def test_every_part_of_a_dataset_is_in_its_digest(change) -> None:
    dataset = Dataset("classification", (1, 2), (Example("a", None, 1), Example("b", None, 1)))
    assert digest(replace(dataset, **change)) != digest(dataset)


def test_a_digest_is_the_same_for_ever() -> None:
    dataset = Dataset("classification", ("no", "yes"), (Example("ü", "b", "yes"), Example("a", "b", "no")))
    assert digest(dataset) == "sha256:1378773c1ae5459a1ca84f43a425aa06dcd8bfefe6f6253b90c82ea805a80065"


def test_half_a_surrogate_pair_is_an_error_not_a_crash() -> None:
    dataset = Dataset("classification", (1, 2), (Example("\ud800", None, 1),))
    for use in (digest, save):
        with pytest.raises(DatasetError):
            use(dataset)
    assert len(row_hashes(dataset.train)) == 1


def tampered() -> list[bytes]:
    saved = save(Dataset("classification", (1, 2), (Example("a", None, 1), Example("b", None, 2))))
    header, *rows = gzip.decompress(saved).splitlines(keepends=True)
    other = json.dumps(json.loads(header) | {"version": 2}).encode() + b"\n"
    return [
        b"",
        b"junk",
        saved[:-4],
        saved[:30],
        gzip.compress(b"[]\n"),
        gzip.compress(b"{}\n"),
        gzip.compress(header + rows[0]),
        gzip.compress(header + b"".join(rows) + rows[0]),
        gzip.compress(header + rows[0] + b"[1]\n"),
        gzip.compress(other + b"".join(rows)),
    ]


@pytest.mark.parametrize("data", tampered(), ids=count())
def test_bytes_that_are_no_whole_snapshot_are_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError):
        load(data)


def test_row_hashes_ignore_label_case_and_blanks_but_not_order_or_words() -> None:
    one, same, swapped, single, other = row_hashes(
        [
            Example("A  Straße", "b\n", 1),
            Example("a STRASSE ", "B", "x"),
            Example("b", "a straße", 1),
            Example("a straße b", None, 1),
            Example("a straße", "c", 1),
        ]
    )
    assert one == same
    assert len({one, swapped, single, other}) == 4
    assert all(-(2**63) <= row_hash < 2**63 for row_hash in (one, swapped, single, other))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 50))
def test_lines_are_what_splitting_the_bytes_gives_with_long_ones_left_out(parts: list[bytes], most: int) -> None:
    import tempfile
    from pathlib import Path
    from unittest.mock import patch

    data = b"x" + b"\n".join(parts)  # never a gzip or byte-order mark
    with tempfile.TemporaryDirectory() as folder, patch.object(source, "MAX_LINE_BYTES", most):
        path = Path(folder) / "lines"
        path.write_bytes(data)
        lines = list(source.lines_of(path))
    expected = data.removesuffix(b"\n").split(b"\n")
    assert [line.data for line in lines] == [part if len(part) <= most else None for part in expected]
    assert [line.offset for line in lines] == [
        sum(len(part) + 1 for part in expected[:i]) for i in range(len(expected))
    ]
