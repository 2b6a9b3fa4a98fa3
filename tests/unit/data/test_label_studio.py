"""Read configurations, tasks and annotations from Label Studio; annotations that cannot be labels stay unused."""

from __future__ import annotations

from typing import Any

import pytest
from support.refusals import refused

from onboard.data.label_studio import UnusedAnnotation, annotations_in, read_config, texts_in
from onboard.domain.annotation import (
    DELETED_AT,
    Annotation,
    as_sets,
    have_sets,
    labels_of_texts,
    texts_to_remove,
    without_sets,
)

CONFIG = """
<View>
  <!-- what people see -->
  <Header value="What is it about?"/>
  <Text name="mail" value="$body"/>
  <Choices name="topic" toName="mail" choice="single">
    <Choice value="refund"/>
    <Choice value="Where is my parcel?" alias="delivery"/>
    <Choice value=" other "/>
  </Choices>
  <Labels name="spans" toName="mail"><Label value="person"/></Labels>
</View>
"""
PAIRS = """
<View><Text name="a" value="$text_a"/><Text name="b" value="$text_b"/>
<Choices name="same" toName="a"><Choice value="yes"/><Choice value="no"/></Choices></View>
"""


def choice(label: object, **value: Any) -> dict[str, Any]:
    """A choice as an annotation has it; with the place of a region where that is given."""
    labels = label if isinstance(label, list) else [label]
    return {"from_name": "topic", "to_name": "mail", "type": "choices", "value": {"choices": labels, **value}}


def webhook(*results: dict[str, Any], data: object = None, action: str = "ANNOTATION_CREATED", **more: Any) -> Any:
    """What Label Studio posts for an annotation."""
    task = {"id": 5, "data": {"body": "Money back!"} if data is None else data}
    annotation = {"id": 9, "task": 5, "result": list(results), "updated_at": "2026-11-28T12:00:00Z", **more}
    return {"action": action, "annotation": annotation, "task": task, "project": {"id": 3}}


def read(body: Any) -> list[Annotation | UnusedAnnotation]:
    return list(annotations_in(body, read_config(CONFIG)))


def test_a_configuration_says_which_field_and_labels_there_are() -> None:
    config = read_config(CONFIG)
    assert (config.control_name, config.object_name, config.fields) == ("topic", "mail", ("body",))
    assert config.labels == ("refund", "delivery", "other")
    assert not config.pairs
    assert read_config(PAIRS).fields == ("text_a", "text_b")


@pytest.mark.parametrize(
    ("xml", "type_"),
    [
        ("", "label-studio-config-unreadable"),
        ("<View><Text", "label-studio-config-unreadable"),
        ("\ud800", "label-studio-config-unreadable"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View/>', "label-studio-config-unreadable"),
        ("<View>" * 2000 + "</View>" * 2000, "label-studio-choices-missing"),
        ("<View><Text name='t' value='$t'/></View>", "label-studio-choices-missing"),
        (CONFIG.replace("<Text ", "<Image "), "label-studio-choices-missing"),
        (CONFIG.replace("<Text ", "<HyperText "), "label-studio-choices-missing"),
        (CONFIG.replace('choice="single"', 'perRegion="true"'), "label-studio-choices-missing"),
        (CONFIG.replace('choice="single"', 'choice="some"'), "label-studio-choice-unknown"),
        (CONFIG.replace('"refund"', "'[&quot;a&quot;]'"), "label-studio-label-is-list"),
        (CONFIG.replace('value="$body"', 'value="$body" valueType="url"'), "label-studio-text-by-url"),
        (CONFIG.replace("$body", "Dear $name, $body"), "label-studio-text-without-field"),
        (CONFIG.replace("<Choice value", "<Option value"), "label-studio-labels-missing"),
        (CONFIG.replace("refund", "r" * 201), "label-studio-labels-missing"),
    ],
)
def test_a_configuration_that_asks_for_anything_else_is_refused(xml: str, type_: str) -> None:
    with refused(type_):
        read_config(xml)


def test_an_annotation_is_one_choice_for_the_whole_text() -> None:
    (annotation,) = read(webhook(choice("refund")))
    assert annotation == Annotation("3", "9", ("Money back!", None), "refund", 1795867200.0)
    (pair,) = annotations_in(
        {
            **webhook({**choice("yes"), "from_name": "same"}, data={"text_a": "one", "text_b": "two"}),
        },
        read_config(PAIRS),
    )
    assert isinstance(pair, Annotation)
    assert (pair.text, pair.label) == (("one", "two"), "yes")


@pytest.mark.parametrize(
    "results",
    [
        [],
        [choice(["refund", "other"])],
        [choice("refund"), choice("other")],
        [choice("refund", start=0, end=4)],
        [choice("refund", x=1.0, y=2.0, width=3.0, height=4.0)],
        [{"from_name": "spans", "value": {"start": 0, "end": 5, "text": "Money", "labels": ["person"]}}],
        [{"from_name": "topic", "value": {"rating": 3}}],
        [{"from_name": "topic"}],
        ["refund"],
        [choice(None)],
        [choice(" ")],
    ],
)
def test_regions_and_several_choices_are_no_label_and_are_told(results: list[Any]) -> None:
    unused, annotation = read(webhook(*results))
    assert isinstance(unused, UnusedAnnotation)
    assert (unused.number, "no single choice" in unused.reason) == ("9", True)
    assert isinstance(annotation, Annotation)
    assert annotation.label is None  # what it said before no longer counts


SEVERAL = CONFIG.replace('choice="single"', 'choice="multiple"')


def read_several(*results: Any) -> list[Annotation | UnusedAnnotation]:
    return list(annotations_in(webhook(*results), read_config(SEVERAL)))


def test_several_choices_are_a_set_in_one_order_and_each_counts_once() -> None:
    config = read_config(SEVERAL)
    assert (config.several, config.labels) == (True, ("refund", "delivery", "other"))
    assert not read_config(CONFIG).several
    for results in ([choice(["refund", "other", "refund "])], [choice("refund"), choice("other")]):
        (annotation,) = read_several(*results)
        assert isinstance(annotation, Annotation)
        assert annotation.label == '["other", "refund"]'
    (alone,) = read_several(choice("refund"), choice("Money", start=0, end=5))  # the region says nothing of the text
    assert isinstance(alone, Annotation)
    assert alone.label == '["refund"]'


@pytest.mark.parametrize(
    "results",
    [
        [],
        [choice([])],
        [choice(["refund", " "])],
        [choice(["refund", None])],
        [choice(["refund", "r" * 201])],
        [choice(["refund", "nul \0"])],
        [choice(["refund", '["a"]'])],
        [choice([f"label {place}" for place in range(1001)])],
        [choice("refund", start=0, end=4)],
        [{"from_name": "topic", "value": {"choices": "refund"}}],
    ],
)
def test_unusable_choices_are_no_set_and_are_told(results: list[Any]) -> None:
    unused, annotation = read_several(*results)
    assert isinstance(unused, UnusedAnnotation)
    assert "usable choice" in unused.reason
    assert isinstance(annotation, Annotation)
    assert annotation.label is None


def test_an_answer_of_several_labels_is_one_result_and_none_without_labels() -> None:
    config = read_config(SEVERAL)
    (result,) = config.results_of(["refund", "other"], 0.75)
    assert (result["value"], result["score"]) == ({"choices": ["refund", "other"]}, 0.75)
    assert config.results_of([], 0.75) == []


@pytest.mark.parametrize(
    "data",
    [
        {"image": "https://example.org/a.png"},
        {"body": ""},
        {"body": None},
        {"body": ["<p>", "html"]},
        {"body": "nul \0"},
        {"body": "half \ud800"},
        "a text",
        [],
    ],
)
def test_a_task_without_a_text_gives_no_label(data: object) -> None:
    (unused,) = read(webhook(choice("refund"), data=data))
    assert isinstance(unused, UnusedAnnotation)
    assert unused.reason == "its task has no text"


def test_html_in_a_text_is_text() -> None:
    (annotation,) = read(webhook(choice("refund"), data={"body": "<b>Money</b>"}))
    assert isinstance(annotation, Annotation)
    assert annotation.text == ("<b>Money</b>", None)


def test_a_skipped_annotation_has_no_label_and_is_not_told() -> None:
    (annotation,) = read(webhook(choice("refund"), was_cancelled=True))
    assert isinstance(annotation, Annotation)
    assert annotation.label is None


def test_deletions_name_annotations_and_nothing_else() -> None:
    body = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 9}, {"id": None}, 4], "project": {"id": 3}}
    assert list(annotations_in(body, None)) == [Annotation("3", "9", None, None, DELETED_AT)]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "ANNOTATION_CREATED"},
        {"action": "TASKS_CREATED", "tasks": [{"id": 1, "data": {"body": "x"}}]},
        {"action": "ANNOTATION_CREATED", "annotation": 7, "project": "x"},
        {"action": ["ANNOTATIONS_DELETED"], "annotations": None},
        {"action": "ANNOTATIONS_DELETED", "annotations": {"id": {}}},
        {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "nul \0"}, {"id": "half \ud800"}, {"id": True}]},
    ],
)
def test_other_events_and_odd_ones_are_no_annotations(body: Any) -> None:
    assert read(body) == []


def test_many_annotations_come_with_their_tasks() -> None:
    body = webhook()
    body["action"] = "ANNOTATIONS_CREATED"
    body["task"] = [{"id": number, "data": {"body": f"text {number}"}} for number in (1, 2)]
    body["annotation"] = [
        {"id": 10 + number, "task": number, "result": [choice("refund")], "updated_at": "nonsense"} for number in (2, 1)
    ]
    found = [one for one in read(body) if isinstance(one, Annotation)]
    assert [(one.number, one.text, one.updated_at) for one in found] == [
        ("12", ("text 2", None), 0.0), ("11", ("text 1", None), 0.0),
    ]  # fmt: skip


def test_texts_of_tasks_keep_their_order() -> None:
    tasks = [{"data": {"body": "one"}}, {"data": {"image": "x"}}, {"data": {"body": "two"}}]
    assert texts_in(tasks, read_config(CONFIG)) == [("one", None), None, ("two", None)]


def test_annotators_who_disagree_give_the_label_of_most_or_none() -> None:
    def said(number: int, text: str, label: str | None, *, published: bool = False) -> Annotation:
        return Annotation("1", str(number), (text, None), label, 1.0, published)

    known = [
        said(1, "a", "x"), said(2, "a", "y"), said(3, "a", "x"), said(4, "b", "x"), said(5, "b", "y"),
        said(6, "c", None, published=True), said(7, "d", None), said(8, "e", None, published=True), said(9, "e", "x"),
    ]  # fmt: skip
    assert labels_of_texts(known) == {("a", None): "x", ("e", None): "x"}
    assert texts_to_remove(known) == (("c", None),)


def test_annotators_give_the_labels_that_more_than_half_chose() -> None:
    given = {
        "a": ['["x", "y"]', '["x"]', '["x", "z"]'], "b": ['["x"]', '["y"]'], "c": ["x", '["x", "y"]', '["y"]'],
        "d": ["x"], "e": ["x", "x", "y"],
    }  # fmt: skip
    known = [
        Annotation("1", f"{text}{place}", (text, None), label, 1.0)
        for text, labels in given.items()
        for place, label in enumerate(labels)
    ]
    labels = labels_of_texts(known)
    agreed = {("a", None): '["x"]', ("c", None): '["x", "y"]', ("d", None): "x", ("e", None): "x"}
    assert labels == agreed
    assert have_sets(labels.values())
    assert not have_sets(["x"])
    assert as_sets(labels) == {**agreed, ("d", None): '["x"]', ("e", None): '["x"]'}
    assert without_sets(labels) == {("d", None): "x", ("e", None): "x"}
