"""Names, aliases and references from outside: either exactly the grammar, or an InputError that can be shown."""

from __future__ import annotations

import json
import re

import pytest
from bounded import bounded
from hypothesis import example, given
from hypothesis import strategies as some

from onboard.data.task_name import proposal
from onboard.domain.names import Reference, require_alias, require_device_name, require_name
from onboard.errors import InputError

GRAMMAR = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
HOSTILE = [
    "..",
    "../etc/passwd",
    "a/../b",
    "a/b",
    "/etc/passwd",
    "~",
    "..%2f..%2fetc",
    "%2e%2e%2f",
    "%252e%252e%252f",
    "a%00b",
    "..\\..\\windows",
    "a\\b",
    "c:\\a",
    "a\x00",
    "\x00",
    "a\n",
    "a\r\nb",
    "\u2025/",
    "\uff0e\uff0e\uff0fetc",
    "\u2024\u2024",
    "a\u2215b",
    "a\u29f8b",
    "\u0430bc",
    "paws\u200b",
    "pa\u202ews",
    "pa\u0301ws",
    "\u0660",
    "\u00b2",
    "PAWS",
    "a b",
    " a",
    "a ",
    "",
    ".",
    "-",
    "_a",
    "con.txt",
    "a" * 65,
    "a" * 10_000,
    "../" * 3_333,
    "${HOME}",
    "a;b",
    "a'b",
    'a"b',
    "=1+1",
    "+1",
    "@x",
    "\ud800",
]
TEXTS = some.text(max_size=80) | some.sampled_from(HOSTILE) | some.from_regex(r"[a-z0-9_@v./%-]{0,70}", fullmatch=True)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_hostile_name_is_a_name_an_alias_a_reference_or_a_device(name: str) -> None:
    for read in (require_name, require_alias, require_device_name):
        with pytest.raises(InputError):
            read(name)
    for reference in (name, f"paws@{name}", f"{name}@latest"):
        with pytest.raises(InputError) as caught:
            Reference.parse(reference)
        assert len(json.dumps(caught.value.to_json())) < 2_000


@bounded(200)
@given(TEXTS)
def test_a_name_is_accepted_exactly_when_it_follows_the_grammar(name: str) -> None:
    if GRAMMAR.match(name):
        assert require_name(name) == name
    else:
        with pytest.raises(InputError):
            require_name(name)


@bounded(200)
@given(TEXTS)
@example("a@v0")
@example("a@v1@v2")
@example("a@v9999999999")
def test_a_reference_is_read_and_written_alike_or_refused(text: str) -> None:
    try:
        reference = Reference.parse(text)
    except InputError:
        return
    assert str(reference) in (text, f"{text}@latest")
    assert Reference.parse(str(reference)) == reference
    assert GRAMMAR.match(reference.task)
    assert (reference.version is None) != (reference.alias is None)


@bounded(50)
@given(some.text(max_size=300) | some.sampled_from(HOSTILE))
def test_what_is_proposed_instead_is_a_name(text: str) -> None:
    assert require_name(proposal(text))
