"""The teacher's tokenizer with fewer pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused
from support.tiny_teacher import SPECIAL, make_word_pieces
from transformers import AutoTokenizer

from onboard.making.pretrain.tokenizer import inherit_tokenizer, teacher_pieces

WORDS = ["film", "plot", "garden", "zebra", "great"]
TEXTS = ["A great film [SEP] [MASK]", "the film映, the plot", "Great films", "a garden of plots", "[SEP] [SEP] great"]


@pytest.fixture(scope="module")
def teacher() -> Any:
    return make_word_pieces(WORDS)


@pytest.fixture(scope="module")
def characters(teacher: Any) -> set[str]:
    """The pieces of one character that the texts can need: all of ASCII, of the others what is there."""
    pieces = {piece for piece in teacher.get_vocab() if len(piece.removeprefix("##")) == 1}
    return {piece for piece in pieces if piece.isascii()} | {"映"}


@pytest.fixture(scope="module")
def inherited(teacher: Any, characters: set[str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three special tokens, the characters and three more pieces."""
    folder = tmp_path_factory.mktemp("tokenizer")
    inherit_tokenizer(TEXTS, teacher, 3 + len(characters) + 3, folder)
    return AutoTokenizer.from_pretrained(folder)


def test_characters_and_the_most_frequent_pieces_stay_and_none_of_the_teachers_special_tokens(
    inherited: Any, characters: set[str]
) -> None:
    assert set(inherited.get_vocab()) == {"<pad>", "</s>", "<unk>", "film", "great", "plot", *characters}
    assert not set(SPECIAL) & set(inherited.get_vocab())
    assert (inherited.pad_token_id, inherited.eos_token_id, inherited.unk_token_id) == (0, 1, 2)


def test_every_piece_knows_its_name_at_the_teacher_in_the_teachers_order(inherited: Any, teacher: Any) -> None:
    names = teacher_pieces(inherited, teacher)
    assert names[:3] == ["[PAD]", "[SEP]", "[UNK]"]
    assert names[3:] == inherited.convert_ids_to_tokens(range(3, len(inherited)))
    ids = teacher.convert_tokens_to_ids(names)
    assert teacher.unk_token_id not in ids[3:]
    assert ids[3:] == sorted(ids[3:])


def test_a_word_that_lost_its_piece_is_written_with_shorter_ones(inherited: Any, teacher: Any) -> None:
    assert teacher.tokenize("zebra gardens") == ["zebra", "garden", "##s"]
    ids = inherited("Zebra gardens, great FILMS", add_special_tokens=False)["input_ids"]
    pieces = inherited.convert_ids_to_tokens(ids)
    assert pieces[:5] == ["z", "##e", "##b", "##r", "##a"]
    assert pieces[-4:] == [",", "great", "film", "##s"]
    assert inherited.decode(ids) == "zebra gardens, great films"


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="abcxyzéÀ ,.!0189映", min_size=1, max_size=30))
def test_what_the_characters_can_write_has_no_unknown_token(inherited: Any, text: str) -> None:
    assert inherited.unk_token_id not in inherited(text, add_special_tokens=False)["input_ids"]


def test_a_vocabulary_without_room_for_the_characters_is_refused_and_the_field_named(
    teacher: Any, characters: set[str], tmp_path: Path
) -> None:
    with refused("vocabulary-too-small", characters=len(characters)) as caught:
        inherit_tokenizer(TEXTS, teacher, 100, tmp_path)
    assert caught.value.data["field"] == "backbone.vocabulary_size"
    assert f"{len(characters) + 3}" in caught.value.remedy
    assert not any(tmp_path.iterdir())
    inherit_tokenizer(TEXTS, teacher, len(characters) + 3, tmp_path)


def test_the_same_texts_give_the_same_bytes(teacher: Any, tmp_path: Path) -> None:
    for name in ("one", "other"):
        inherit_tokenizer(TEXTS, teacher, 150, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()
