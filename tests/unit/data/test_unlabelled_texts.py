"""Texts without labels beside a dataset: any format, none that is labelled, each once, in no order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dataset_rows import balanced
from hypothesis import given
from hypothesis import strategies as st

from onboard.data import unlabelled
from onboard.data.hashes import text_hash
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.unlabelled import Pool, pool_of

TEXTS = st.lists(
    st.sampled_from(["good film", "Good  film", "bad film", "so so", "why", "a b", "A B", "new"]), min_size=1
)


@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_the_pool_depends_on_what_rows_say_and_never_on_their_order(
    texts: list[str], known: list[str], rng: Any
) -> None:
    labelled = {text_hash(text, None) for text in known}
    rows = [(text, None) for text in texts]
    pool = pool_of(rows, labelled)
    turned = rows.copy()
    rng.shuffle(turned)
    assert pool_of(turned, labelled) == pool
    hashes = [text_hash(row.text_a, row.text_b) for row in pool.rows]
    assert len(set(hashes)) == len(hashes)
    assert not labelled & set(hashes)
    assert pool.known + pool.repeated + len(pool.rows) == pool.read == len(texts)


def test_of_more_texts_than_are_looked_at_the_same_ones_are_drawn_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlabelled, "MOST_ROWS", 30)
    rows: list[tuple[str, str | None]] = [(f"text {number}", f"pair {number}") for number in range(100)]
    pool = pool_of(rows, set())
    assert pool_of(rows[::-1], set()) == pool
    assert len(pool.rows) == 30
    assert all(row.text_b for row in pool.rows)
    (finding,) = pool.findings()
    assert (finding.code, finding.count) == ("many_unlabelled", 70)
    assert finding.remedy
    shorter = pool_of(rows[:60], set())  # what is drawn of a part is what is drawn of the whole, where it is there
    drawn = {row.text_a for row in pool.rows} & {text for text, _ in rows[:60]}
    assert drawn <= {row.text_a for row in shorter.rows}


def _pool(path: Path, dataset: Path, **options: Any) -> Pool:
    pool = read_dataset(dataset, ReadOptions(unlabelled=path, suspects=False, **options)).unlabelled
    assert pool is not None
    return pool


def test_any_format_is_read_with_or_without_a_label(
    write_jsonl: Callable[..., Path], write_bytes: Callable[[bytes, str], Path]
) -> None:
    dataset = write_jsonl(balanced(20))
    for data, name in (
        (b"text\nnew one\nnew two\n", "a.csv"),
        (b"label\tsentence\n\tnew one\nodd\tnew two\n", "a.tsv"),
        (gzip.compress(b'{"text": "new one", "label": null}\n{"text": "new two"}\n'), "a.jsonl.gz"),
    ):
        assert [row.text_a for row in _pool(write_bytes(data, name), dataset).rows] == ["new one", "new two"]


def test_texts_that_are_labelled_in_any_split_are_left_out_even_those_that_shots_does_not_draw(
    write_jsonl: Callable[..., Path],
) -> None:
    rows = balanced(40)
    validation = write_jsonl(
        [{"text": "checked", "label": "good"}, {"text": "too", "label": "bad"}], "validation.jsonl"
    )
    texts = [rows[3], rows[5], {"text": "CHECKED"}, {"text": "new"}, {"text": " New "}]
    path = write_jsonl(texts, "pool.jsonl")
    pool = _pool(path, write_jsonl(rows), validation=validation, shots=8)
    assert pool.to_json() == {"read": 5, "known": 3, "repeated": 1, "considered": 1}


@pytest.mark.parametrize(("content", "code"), [
    ("", "empty_file"), ('{"body": "x"}\n', "text_field"), ('{"text": ""}\n', "empty_text"),
    ('{"text_a": "x", "text_b": "y"}\n', "text_field"), ('{"text": "sentence number 3"}\n', "all_labelled"),
])  # fmt: skip
def test_what_cannot_be_used_is_told_with_what_to_do(
    content: str, code: str, write_jsonl: Callable[..., Path], write_bytes: Callable[[bytes, str], Path],
    problems_of: Callable[..., list[dict[str, Any]]],
) -> None:  # fmt: skip
    path = write_bytes(content.encode(), "pool.jsonl")
    (problem,) = problems_of(write_jsonl(balanced(20)), unlabelled=path)
    assert (problem["code"], problem["file"]) == (code, str(path))
    assert problem["remedy"] or code == "empty_file"


def test_its_problems_are_told_together_with_those_of_the_dataset(
    write_jsonl: Callable[..., Path], problems_of: Callable[..., list[dict[str, Any]]]
) -> None:
    dataset = write_jsonl([*balanced(20), {"text": "", "label": "good"}])
    path = write_jsonl([{"text": 3}], "pool.jsonl")
    assert [problem["code"] for problem in problems_of(dataset, unlabelled=path)] == ["empty_text", "text_type"]
    assert json.loads(path.read_text()) == {"text": 3}
