"""The default name of a task is its file's stem; a stem that does not fit is refused with a name that does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.task_name import check_task_name, proposal, task_name_of
from onboard.domain.names import require_name
from onboard.errors import InputError


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("folder/reviews.jsonl", "reviews"),
        ("reviews.csv.gz", "reviews"),
        ("reviews.parquet", "reviews"),
        ("a_b-2.TSV", "a_b-2"),
        ("hf://stanfordnlp/imdb", "imdb"),
        ("hf://nyu-mll/glue/sst2", "sst2"),
    ],
)
def test_the_stem_is_the_name(source, name) -> None:
    assert task_name_of(source) == name


@pytest.mark.parametrize(
    ("source", "proposed"),
    [
        ("My Reviews.csv", "my-reviews"),
        ("Ünïcode.jsonl", "unicode"),
        ("v1.2.jsonl", "v1-2"),
        (".jsonl", "my-task"),
        ("漢字.csv", "my-task"),
        ("x" * 99 + ".csv", "x" * 64),
        ("hf://owner/SomeData", "somedata"),
    ],
)
def test_a_stem_that_is_no_name_is_refused_with_one_that_is(source, proposed) -> None:
    with pytest.raises(InputError) as caught:
        task_name_of(source)
    assert caught.value.remedy.endswith(f"--task {proposed}")


@pytest.mark.parametrize("name", ["../../x", "", "A", "-a", "a/b", "a b", "a\n", "x" * 65, "a.b", "é"])
def test_names_outside_the_grammar_are_refused(name) -> None:
    with pytest.raises(InputError):
        check_task_name(name)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=100))
def test_every_proposal_follows_the_grammar(text) -> None:
    assert require_name(proposal(text))
