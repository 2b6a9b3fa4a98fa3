"""What a change of labels asks for, and what it makes of the label set."""

from __future__ import annotations

from typing import Any

import pytest
from support.refusals import refused

from onboard.domain.label_change import LabelChange

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
    ("action", "labels", "to", "type_"),
    [
        ("rename", ("billing",), "refund", "label-name-in-use"),
        ("rename", ("billing",), "1", "label-name-in-use"),
        ("rename", ("billing",), "billing", "label-name-unchanged"),
        ("merge", ("billing", "refund"), "other", "label-name-in-use"),
        ("merge", LABELS, "all", "labels-left-too-few"),
    ],
)
def test_names_in_use_and_too_few_labels_are_refused(action: Any, labels: Any, to: Any, type_: str) -> None:
    with refused(type_):
        known(action, labels, to)


def test_the_last_but_one_label_is_not_deleted() -> None:
    with refused("labels-left-too-few"):
        LabelChange("delete", ("a",)).known_to("mail", ("a", "b"))


@pytest.mark.parametrize(
    ("action", "labels", "more", "type_", "facts"),
    [
        ("remove", ("billing",), {}, "label-action-unknown", {}),
        ("merge", ("billing",), {"to": "x"}, "merge-labels-too-few", {}),
        ("rename", ("billing", "refund"), {"to": "x"}, "label-change-labels-too-many", {}),
        ("rename", ("billing",), {}, "label-change-name", {}),
        ("delete", ("billing",), {"to": "x"}, "label-change-name", {}),
        ("describe", ("billing",), {}, "label-change-description", {}),
        ("rename", ("billing",), {"to": " "}, "label-name-wrong", {"trouble": "is empty"}),
        ("rename", ("billing",), {"to": "x "}, "label-name-wrong", {"trouble": "begins or ends with whitespace"}),
        (
            "rename",
            ("billing",),
            {"to": "x" * 201},
            "label-name-wrong",
            {"trouble": "has 201 characters; the limit is 200"},
        ),
        ("rename", ("billing",), {"to": "x\ny"}, "label-name-wrong", {"trouble": "contains a control character"}),
        ("rename", ("biling",), {"to": "x"}, "label-not-in-task", {"label": "biling"}),
        ("merge", ("billing", "billing"), {"to": "x"}, "label-given-twice", {}),
    ],
)
def test_what_is_not_a_change_is_refused(action: Any, labels: Any, more: Any, type_: str, facts: Any) -> None:
    with refused(type_, **facts):
        known(action, labels, **more)
