"""Every type of error has a message in the table, and the wording of all of them is tested here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest
from support.refusals import refused

from onboard.errors import BaseDamagedError, ConflictError, InputError, NotFoundError, OnboardError, type_in, type_uri
from onboard.messages import MESSAGES, ROOMS
from reference.errors import classes_of_types, page, raised

# Turns of phrase that nobody else uses; "a label is no class" negates the noun instead of the verb.
BANNED: Final = re.compile(
    r"\b(told|beside|anew|of its own|is no [a-z]|are no [a-z]|what is|whose|asked for|speaks for|lets through)\b", re.I
)
IN_EVERY_DOCUMENT: Final = {"code", "type", "title", "detail", "instance", "message"}


def test_every_error_is_raised_by_a_type_of_the_table_with_the_facts_of_its_message() -> None:
    wrong = []
    for place in raised():
        if place.type_ not in MESSAGES:
            wrong.append(f"{place.where} {place.kind}: {place.type_ or 'the type is not written there'}")
        elif not place.is_open and (missing := MESSAGES[place.type_].fields - place.facts):
            wrong.append(f"{place.where} {place.type_}: lacks {', '.join(sorted(missing))}")
    assert wrong == []


def test_every_message_of_the_table_is_raised_somewhere_and_stands_in_one_room_and_on_the_page() -> None:
    assert sorted(set(MESSAGES) - set(classes_of_types())) == []
    assert sum(map(len, ROOMS)) == len(MESSAGES)
    shown = page()
    assert [type_ for type_ in MESSAGES if f"| `{type_}` |" not in shown] == []


@pytest.mark.parametrize("type_", MESSAGES)
def test_a_message_is_full_sentences_in_plain_words_with_a_remedy(type_: str) -> None:
    message = MESSAGES[type_]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", type_)
    assert not message.fields & IN_EVERY_DOCUMENT
    assert message.text.endswith((".", "}"))
    assert message.remedy, "an error says what to do"
    assert re.match(r"[A-Z{`]", message.remedy)
    for said in message.render(dict.fromkeys(message.fields, 7)):
        assert not said.startswith("What ")
        assert BANNED.search(said) is None


def test_an_error_is_filled_in_with_its_facts_and_keeps_them_as_json_has_them() -> None:
    error = ConflictError("labels-differ", task="mood", had=("a", "b"), now="c", present=["a", "b"], wanted=["c"])
    assert "'mood'" in error.message
    assert error.to_json() == {
        "code": "conflict", "type": "labels-differ", "message": error.message, "remedy": error.remedy, "task": "mood",
        "had": ["a", "b"], "now": "c", "present": ["a", "b"], "wanted": ["c"],
    }  # fmt: skip


def test_a_list_of_facts_is_shown_as_its_items() -> None:
    error = ConflictError("tables-of-other-program", tables=["jobs", "tasks"])
    assert error.message.endswith(": jobs, tasks.")
    assert error.data == {"tables": ["jobs", "tasks"]}


def test_a_sentence_in_place_of_a_type_is_taken_as_it_is_with_the_type_of_its_class() -> None:
    error = NotFoundError("Nothing is there.", "Look elsewhere.", row=3)
    assert error.to_json() == {
        "code": "not_found", "type": "not-found", "message": "Nothing is there.", "remedy": "Look elsewhere.", "row": 3,
    }  # fmt: skip


def test_the_same_fault_as_an_error_of_another_class_keeps_its_type_and_facts() -> None:
    missing = NotFoundError("unknown-job", job="j1")
    error = BaseDamagedError.like(missing, "Copy it.", file="base.json")
    assert (error.type, error.message, error.remedy) == (missing.type, missing.message, "Copy it.")
    assert (error.exit_code, error.data) == (1, {"job": "j1", "file": "base.json"})


def test_a_type_is_a_uri_in_problem_documents_and_those_of_others_are_not_types() -> None:
    assert type_uri("unknown-job") == "urn:onboard:error:unknown-job"
    assert type_in(type_uri("unknown-job")) == "unknown-job"
    assert [type_in(other) for other in ("about:blank", "https://proxy.test/unknown-job", None)] == ["", "", ""]


@pytest.mark.parametrize(
    ("type_", "facts"), [("unknown-job", {}), ("labels-too-few", {"labels": ["b"]}), ("labels-too-few", {"row": 1})]
)
def test_a_test_that_expects_another_type_or_other_facts_fails(type_: str, facts: Mapping[str, object]) -> None:
    with pytest.raises(AssertionError, match="expected"), refused(type_, **facts):
        raise InputError("labels-too-few", labels=["a"])


def test_a_test_may_expect_one_of_the_problems_of_a_dataset() -> None:
    problems = [{"type": "empty-text", "row": 3}, {"type": "empty-text", "row": 5}]
    with refused("empty-text", row=5):
        raise OnboardError.reported("several-problems", "…", "", {"problems": problems})
