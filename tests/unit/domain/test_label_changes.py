"""What a change of labels asks for, and what it makes of the label set."""

from __future__ import annotations

from typing import Any

import pytest

from onboard.domain.label_change import LabelChange
from onboard.errors import ConflictError, InputError

LABELS = ("billing", "refund", "other", 1, True)


def known(action: Any, labels: tuple[Any, ...], to: Any = None, **more: Any) -> LabelChange:
    return LabelChange(action, labels, to, **more).known_to("mail", LABELS)


def test_the_new_label_stands_where_the_first_changed_one_stood() -> None:
    assert known("rename", ("refund",), "money back").after(LABELS) == ("billing", "money back", "other", 1, True)
    assert known("merge", ("refund", "billing"), "money").after(LABELS) == ("money", "other", 1, True)
    assert known("delete", ("other",)).after(LABELS) == ("billing", "refund", 1, True)
    assert known("describe", ("other",), description="the rest").after(LABELS) == LABELS


def test_labels_that_are_not_texts_are_found_by_how_they_are_written() -> None:
    assert known("delete", ("1",)).labels == (1,)
    assert known("delete", ("true",)).labels == (True,)
    assert known("delete", (1,)).labels == (1,)


def test_merging_into_one_of_the_merged_labels_keeps_its_name() -> None:
    change = known("merge", ("billing", "refund"), "refund")
    assert change.become == {'"billing"': "refund", '"refund"': "refund"}


@pytest.mark.parametrize(
    ("action", "labels", "to", "message"),
    [
        ("rename", ("billing",), "refund", "has another label 'refund'"),
        ("rename", ("billing",), "1", "has another label '1'"),
        ("rename", ("billing",), "billing", "already called 'billing'"),
        ("merge", ("billing", "refund"), "other", "has another label 'other'"),
        ("merge", LABELS, "all", "only one would be left"),
    ],
)
def test_names_in_use_and_too_few_labels_are_refused(action: Any, labels: Any, to: Any, message: str) -> None:
    with pytest.raises(ConflictError, match=message):
        known(action, labels, to)


def test_the_last_but_one_label_is_not_deleted() -> None:
    with pytest.raises(ConflictError, match="only one would be left"):
        LabelChange("delete", ("a",)).known_to("mail", ("a", "b"))


@pytest.mark.parametrize(
    ("action", "labels", "more", "message"),
    [
        ("remove", ("billing",), {}, "is not a change of labels"),
        ("merge", ("billing",), {"to": "x"}, "at least two labels"),
        ("rename", ("billing", "refund"), {"to": "x"}, "takes one label"),
        ("rename", ("billing",), {}, "lacks the new name"),
        ("delete", ("billing",), {"to": "x"}, "takes no new name"),
        ("describe", ("billing",), {}, "lacks the description"),
        ("rename", ("billing",), {"to": " "}, "is empty"),
        ("rename", ("billing",), {"to": "x "}, "ends with whitespace"),
        ("rename", ("billing",), {"to": "x" * 201}, "has 201 characters"),
        ("rename", ("billing",), {"to": "x\ny"}, "control character"),
        ("rename", ("biling",), {"to": "x"}, "does not have the label 'biling'"),
        ("merge", ("billing", "billing"), {"to": "x"}, "is repeated"),
    ],
)
def test_what_is_not_a_change_is_refused(action: Any, labels: Any, more: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        known(action, labels, **more)
