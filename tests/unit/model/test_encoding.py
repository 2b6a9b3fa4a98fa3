"""Texts and label words as token ids."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused
from transformers import PreTrainedTokenizerFast

from onboard.model.encoding import TextEncoder, pad, shares

EOS, BAR, A, B = 1, 3, 4, 5


def test_a_single_text_is_its_tokens_and_end_of_sequence(text_encoder: TextEncoder) -> None:
    assert text_encoder.encode([("a b a", None), ("", None)]) == [[A, B, A, EOS], [EOS]]
    assert text_encoder.encode([]) == []


def test_a_pair_has_the_separator_between_its_texts(text_encoder: TextEncoder) -> None:
    texts = [("a", None), ("a b", "b"), ("b", None), ("b", "")]
    assert text_encoder.encode(texts) == [[A, EOS], [A, B, BAR, B, EOS], [B, EOS], [B, BAR, EOS]]


def test_the_longer_text_is_cut_first(text_encoder: TextEncoder) -> None:
    encoded = text_encoder.encode(
        [("a " * 15, None), ("a " * 16, None), ("a " * 3, "b " * 40), ("a " * 40, "b " * 2), ("a " * 40, "b " * 40)]
    )
    assert [len(row) for row in encoded] == [16] * 5
    assert [(row.count(A), row.count(B)) for row in encoded] == [(15, 0), (15, 0), (3, 11), (12, 2), (7, 7)]
    assert all(row[-1] == EOS for row in encoded)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 200))
def test_shares_fill_the_budget_and_favour_the_shorter_text(left: int, right: int, budget: int) -> None:
    a, b = shares(left, right, budget)
    assert 0 <= a <= left
    assert 0 <= b <= right
    assert a + b == min(left + right, budget)
    if a < left and b < right:
        assert a - b in (0, 1)
    elif a < left:
        assert a + 1 >= b
    elif b < right:
        assert b >= a - 1


def test_byte_tokenizers_work_too(byte_encoder: TextEncoder) -> None:
    assert byte_encoder.encode([("hi", "ö")]) == [[ord("h") + 3, ord("i") + 3, ord("|") + 3, 0xC3 + 3, 0xB6 + 3, EOS]]
    assert byte_encoder.label_ids("no") == [ord("n") + 3, ord("o") + 3, EOS]


def test_a_label_word_ends_in_end_of_sequence_and_may_not_be_empty(text_encoder: TextEncoder) -> None:
    assert text_encoder.label_ids("a b") == [A, B, EOS]
    with refused("label-word-without-tokens"):
        text_encoder.label_ids(" ")


def test_padding_goes_to_the_right() -> None:
    input_ids, mask = pad([[5, 1], [6, 7, 8, 1]], pad_id=0)
    assert input_ids.tolist() == [[5, 1, 0, 0], [6, 7, 8, 1]]
    assert mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert input_ids.dtype == mask.dtype == torch.long


def test_a_tokenizer_without_end_of_sequence_or_room_is_refused(text_encoder: TextEncoder) -> None:
    bare = PreTrainedTokenizerFast(tokenizer_object=text_encoder.tokenizer.backend_tokenizer, pad_token="<pad>")
    with refused("tokenizer-lacks-special-tokens"):
        TextEncoder(bare)
    with refused("too-few-tokens-for-pairs"):
        TextEncoder(text_encoder.tokenizer, max_tokens=3)
