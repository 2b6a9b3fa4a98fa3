"""Rules of form and small edits: what a reader would say of these sentences."""

from __future__ import annotations

import numpy as np
import pytest

from onboard.making.curriculum import edits
from onboard.making.curriculum.mentions import MENTIONS, mentioned
from onboard.making.curriculum.rules import RULES, UNSURE

DECIDE = {rule.name: rule.decide for rule in RULES}


@pytest.mark.parametrize(
    ("rule", "text", "answer"),
    [
        ("asks", "Where is the station?", 0),
        ("asks", "The station is near.", 1),
        ("asks", "Strange, isn't it?", UNSURE),
        ("question-word", "How does it work?", 4),
        ("question-word", "What is it and why?", UNSURE),
        ("question-word", "He asked what it is.", UNSURE),
        ("question-kind", "Why is it so?", 0),
        ("question-kind", "Is it so?", 1),
        ("tense", "He was late.", 0),
        ("tense", "She went home.", 0),
        ("tense", "He is late.", 1),
        ("tense", "They will come.", 2),
        ("tense", "He said that he is late.", UNSURE),
        ("tense", "She has left.", UNSURE),
        ("person", "I like it.", 0),
        ("person", "She likes it.", 3),
        ("person", "I like you.", UNSURE),
        ("sex", "The king left.", 0),
        ("sex", "Her daughter left.", 1),
        ("sex", "He saw her.", UNSURE),
        ("negation", "It isn't so.", 1),
        ("negation", "does n't live up to it", 1),
        ("negation", "It is so.", 0),
        ("negation", "It is unlikely.", UNSURE),
        ("number", "It costs 3 dollars.", 1),
        ("number", "It costs a lot.", 0),
        ("number", "It costs three dollars.", UNSURE),
        ("quotation", 'He said "come to me now".', 1),
        ("quotation", "He came.", 0),
        ("plural", "The dogs are old.", 1),
        ("plural", "A dog is old.", 0),
        ("comparison", "It is bigger than that.", 1),
        ("comparison", "It is big.", 0),
        ("comparison", "The most of it.", UNSURE),
        ("time-or-place", "It began in 1920.", 0),
        ("time-or-place", "They live in a village.", 1),
        ("connection", "It fell because it was old.", 0),
        ("connection", "It is old but good.", 2),
        ("modality", "It may rain.", 0),
        ("modality", "It must rain.", 1),
        ("modality", "It rained on 3 May.", UNSURE),
        ("amount", "All of them left.", 0),
        ("amount", "None of them left.", 2),
        ("voice", "It was written by a friend.", 0),
        ("voice", "A friend wrote it.", 1),
        ("belief", "I think so.", 1),
        ("belief", "She was born in 1920.", 0),
        ("command", "Give me the book.", 0),
        ("command", "The book is here.", 1),
        ("command", "Where is the book?", 2),
        ("opening", "The end.", 0),
        ("opening", "They left.", 1),
        ("opening", "In the end it fell.", 2),
        ("exclamation", "Come here!", 1),
        ("exclamation", "Come here.", 0),
        ("list", "He bought apples, pears, and nuts.", 1),
        ("list", "He bought apples.", 0),
        ("list", "Well, he did.", UNSURE),
        ("aside", "He (her brother) left.", 1),
        ("aside", "He left.", 0),
    ],
)
def test_a_rule_says_what_a_reader_would_say_or_that_it_cannot(rule: str, text: str, answer: int) -> None:
    assert DECIDE[rule](text) == answer


def test_every_wording_names_classes_that_its_rule_has() -> None:
    for rule in RULES:
        assert all(2 <= len(words) <= rule.classes for words in rule.wordings), rule.name
        assert all(len(set(words)) == len(words) for words in rule.wordings)


def test_a_text_mentions_one_kind_of_thing_or_is_left_out() -> None:
    assert MENTIONS[mentioned("The dog barked at the cat.")].words[0] == "animal"
    assert mentioned("The dog barked at the car.") == -1
    assert mentioned("Nothing at all.") == -1


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_two_content_words_are_exchanged_and_no_others_touched(rng: np.random.Generator) -> None:
    text = "The teacher showed the picture to Robert."
    assert edits.swapped(text, rng) == "The picture showed the teacher to Robert."
    assert edits.swapped("She bought bread and butter.", rng) is None  # either order says the same
    assert edits.swapped("It was so.", rng) is None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("In the long war, the city was taken.", "The city was taken in the long war."),
        ("It was really good.", "It was good."),
        ("She knows Robert and Helen.", "She knows Helen and Robert."),
        ("He saw the house.", "He saw house."),
        ("Nothing here.", None),
    ],
)
def test_a_harmless_edit_says_the_same(text: str, same: str | None, rng: np.random.Generator) -> None:
    assert edits.harmless(text, rng) == same


def test_a_sentence_is_denied_and_affirmed_but_never_twice() -> None:
    assert edits.denied("The dog is old.") == "The dog is not old."
    assert edits.denied("The dog is not old.") is None
    assert edits.denied("Is the dog old?") is None
    assert edits.denied("The dog barked.") is None
    assert edits.affirmed("The dog is not old.") == "The dog is old."
    assert edits.affirmed("He cannot come.") == "He can come."
    assert edits.affirmed("The dog is old.") is None
    assert edits.affirmed("It is not so, and never was.") is None


def test_the_main_clause_is_cut_off_from_what_trails_it() -> None:
    assert edits.part("The house was built by Robert, who lived in Rome.") == "The house was built by Robert."
    assert edits.part("If it is so, he was right, which is good.") is None
    assert edits.part("He was right.") is None


def test_one_number_is_changed(rng: np.random.Generator) -> None:
    for _ in range(20):
        changed = edits.renumbered("He was born in 1920.", rng)
        assert changed is not None
        assert changed != "He was born in 1920."
        assert changed.startswith("He was born in ")
        assert int(changed[15:-1]) > 0
    assert edits.renumbered("It costs 1,200 dollars.", rng) is None
