"""Every type of error has a message in the table, and the wording of all of them is tested here and nowhere else."""

from __future__ import annotations

import re

import pytest

from onboard.messages import MESSAGES, ROOMS
from reference.errors import classes_of_types, raised

# Phrases of docs' style guide that nobody else uses.
_BANNED = re.compile(
    r"\b(beside|anew|of its own|is no [a-z]|are no [a-z]|what is|whose|asked for|speaks for|lets through|is told)\b",
    re.IGNORECASE,
)
_DATA_OF_DOCUMENTS = {"code", "type", "title", "detail", "instance", "message"}


def test_every_error_is_raised_by_a_type_of_the_table_with_the_facts_of_its_message() -> None:
    wrong = []
    for place in raised():
        if place.type_ not in MESSAGES:
            wrong.append(f"{place.where} {place.kind}: {place.type_ or 'the type is not written there'}")
        elif not place.is_open and (missing := MESSAGES[place.type_].fields - place.facts):
            wrong.append(f"{place.where} {place.type_}: lacks {', '.join(sorted(missing))}")
    assert wrong == []


def test_every_message_of_the_table_is_raised_somewhere() -> None:
    assert sorted(set(MESSAGES) - set(classes_of_types())) == []


def test_no_type_is_in_two_rooms() -> None:
    assert sum(map(len, ROOMS)) == len(MESSAGES)


def test_no_fact_has_the_name_of_a_member_that_every_error_has() -> None:
    assert [type_ for type_, message in MESSAGES.items() if message.fields & _DATA_OF_DOCUMENTS] == []


@pytest.mark.parametrize("type_", MESSAGES)
def test_a_message_is_a_sentence_in_plain_words_that_its_facts_complete(type_: str) -> None:
    message = MESSAGES[type_]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", type_)
    facts = _Numbers(dict.fromkeys(message.fields, 7))
    for said in message.render(facts):
        assert "{" not in message.text.replace("{{", "").replace("}}", "") or "7" in message.render(facts)[0]
        assert not said.startswith(("What ", "what ")), said
        assert _BANNED.search(said) is None, said


class _Numbers(dict[str, object]):
    """Facts that any format of a template takes."""
