"""Labels become lower-case words that stay distinct, whatever the labels and the tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.verbaliser import MAX_WORDS, says_something, verbalise, words_finding, words_of
from onboard.domain.dataset import in_canonical_order, label_key
from onboard.errors import InputError

labels = st.one_of(
    st.text(min_size=1, max_size=20).filter(str.strip),
    st.booleans(),
    st.integers(-50, 50),
    st.floats(-5, 5, allow_nan=False),
)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("not_entailment", "not entailment"),
        ("CardLost", "card lost"),
        ("card-lost/stolen", "card lost stolen"),
        ("ENTY:animal", "enty animal"),
        ("HTTPError", "http error"),
        ("POSITIVE", "positive"),
        ("  Very   Good ", "very good"),
        ("__init__", "init"),
        ("Schön_Wetter", "schön wetter"),
        ("ПлохойТекст", "плохой текст"),
        ("否定", "否定"),
        ("top10List", "top10 list"),
        ("3D", "3d"),
        ("GPT", "gpt"),
        ("C++", "c++"),
        ("3.5 stars", "3.5 stars"),
        ("-1", "-1"),
        ("😀", "😀"),
        ("+", "+"),
        ("_", "_"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (-1, "-1"),
        (2.0, "2"),
        (0.5, "0.5"),
        (" ".join(f"w{i}" for i in range(30)), " ".join(f"w{i}" for i in range(MAX_WORDS))),
    ],
)
def test_a_label_becomes_words(label, words) -> None:
    assert words_of(label) == words


def test_labels_with_the_same_words_are_numbered_and_exact_ones_keep_them() -> None:
    assert verbalise(["CardLost", "card lost", "card_lost"]) == ("card lost 2", "card lost", "card lost 3")
    assert verbalise([1, "1", 1.0, True, "true"]) == ("1", "1 2", "1 3", "true", "true 2")
    assert verbalise(["A", "a", "a 2"]) == ("a 3", "a", "a 2")


@settings(max_examples=200, deadline=None)
@given(st.lists(labels, min_size=1, max_size=12, unique_by=label_key))
def test_distinct_labels_have_distinct_words_in_any_order(given_labels) -> None:
    words = verbalise(given_labels)
    assert len(set(words)) == len(given_labels)
    assert all(word.strip() == word != "" for word in words)
    by_label = dict(zip(map(label_key, given_labels), words, strict=True))
    ordered = in_canonical_order(given_labels)
    assert verbalise(ordered) == tuple(by_label[label_key(label)] for label in ordered)


def toy_token_ids(word: str) -> list[int]:
    """A vocabulary of lower-case ASCII letters, digits and blanks, four letters to a word; 0 is the unknown token."""
    known = [ord(c) if c.isascii() and (c.isalnum() or c == " ") else 0 for c in word]
    return known[:4] if " " not in word else known


def test_labels_that_the_tokenizer_cannot_tell_become_numbered_labels() -> None:
    labels = ["cats", "catsup", "dog", "😀"]
    assert verbalise(labels, toy_token_ids, unknown_id=0) == ("label 1", "label 2", "dog", "label 4")
    assert verbalise(labels[::-1], toy_token_ids, unknown_id=0) == ("label 4", "dog", "label 2", "label 1")
    assert verbalise(labels, toy_token_ids) == ("label 1", "label 2", "dog", "😀")


def test_labels_without_any_tokens_become_numbered_labels() -> None:
    assert verbalise(["a", "b"], lambda word: [] if word == "b" else [len(word)]) == ("a", "label 2")


def test_a_numbered_label_never_takes_the_tokens_of_a_real_one() -> None:
    assert verbalise(["label 2", "😀"], toy_token_ids, unknown_id=0) == ("label 2", "class 2")


def test_a_vocabulary_without_digits_falls_back_to_letters() -> None:
    def token_ids(word: str) -> list[int]:
        return [0 if c.isdigit() or not c.isascii() else ord(c) for c in word]

    assert verbalise(["😀", "😢"], token_ids, unknown_id=0) == ("label b", "label c")


def test_a_vocabulary_that_tells_nothing_apart_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        verbalise(["a", "b"], lambda word: [0], unknown_id=0)
    assert "--base" in caught.value.remedy


@pytest.mark.parametrize(
    ("given_labels", "words", "renamed"),
    [
        (["not_good", "CardLost", 1.0, True], ["not good", "card lost", "1", "true"], []),
        (["😀", "good"], ["label 1", "good"], ["😀"]),
        (["card_lost", "CardLost"], ["card lost", "card lost 2"], ["CardLost"]),
        (["a b c d e f g h i j k l m", "n"], ["a b c d e f g h i j k l", "n"], ["a b c d e f g h i j k l m"]),
    ],
)
def test_labels_that_do_not_go_by_their_own_words_are_told(given_labels, words, renamed) -> None:
    finding = words_finding(given_labels, words)
    assert [example["label"] for example in finding.examples] == renamed if finding else renamed == []
    if finding:
        word = repr(words[given_labels.index(renamed[0])])
        assert f"for the base it becomes {word}, unless the start defines other words." in finding.message
        assert finding.remedy


@pytest.mark.parametrize(
    ("label", "word", "says"),
    [
        ("card lost", "card lost", True),
        ("CardLost", "card lost 2", True),  # numbered, since another label has the same words
        ("1 star", "1 star", True),
        ("no", "no", True),
        ("c7", "c7", False),
        ("3", "3", False),
        (3, "3", False),
        ("a", "a", False),
        ("称賛", "label 1", False),  # unknown to the base
        ("🙂", "label 2", False),
    ],
)
def test_codes_numbers_and_words_unknown_to_the_base_say_nothing(label: str | int, word: str, says: bool) -> None:
    assert says_something(label, word) is says
