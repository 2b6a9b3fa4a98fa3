"""The base's own tokenizer: lower-cased, without accents, and nothing that it cannot write down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from onboard.pretrain.tokenizer import train_tokenizer

TEXTS = ["the film was good and the plot was not", "a great film, a poor plot", "Yes or no?", "café naïve 42"] * 8


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(TEXTS, 340, folder)
    return AutoTokenizer.from_pretrained(folder)


def round_trip(tokenizer: Any, text: str) -> str:
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.unk_token_id not in ids
    answer: str = tokenizer.decode(ids)
    return answer.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the film was good", "the film was good"),
        ("The FILM was Good", "the film was good"),
        ("café naïve", "cafe naive"),
        ("good 🙂 film 👩‍🚀!", "good 🙂 film 👩‍🚀!"),
        ("映画 фильм ταινία", "映画 фильм ταινια"),
        ("zxqj 0987654321", "zxqj 0987654321"),
    ],
)
def test_texts_come_back_emoji_and_unseen_scripts_by_their_bytes(tokenizer: Any, text: str, expected: str) -> None:
    assert round_trip(tokenizer, text) == expected


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="abcxyz 0123456789é🙂映", min_size=1, max_size=30))
def test_no_text_has_an_unknown_token(tokenizer: Any, text: str) -> None:
    assert tokenizer.unk_token_id not in tokenizer(text, add_special_tokens=False)["input_ids"]


def test_an_emoji_without_a_piece_becomes_its_utf8_bytes(tokenizer: Any) -> None:
    ids = tokenizer("🙂", add_special_tokens=False)["input_ids"]
    pieces = [piece for piece in tokenizer.convert_ids_to_tokens(ids) if piece != "▁"]
    assert pieces == [f"<0x{byte:02X}>" for byte in "🙂".encode()]


def test_the_special_tokens_stand_where_t5_expects_them(tokenizer: Any) -> None:
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (0, 1, 2)
    assert len(tokenizer) <= 340
    assert tokenizer.convert_tokens_to_ids("<0x00>") == 3


def test_training_again_gives_the_same_pieces(tokenizer: Any, tmp_path: Path) -> None:
    train_tokenizer(TEXTS, 340, tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert set(again.get_vocab()) == set(tokenizer.get_vocab())  # pieces of one score come in any order
