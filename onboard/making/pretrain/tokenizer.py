"""The teacher's WordPiece tokenizer with fewer pieces. Words without a piece are split into shorter ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onboard.errors import InputError

PAD, EOS, UNK = "<pad>", "</s>", "<unk>"
PAD_ID, EOS_ID = 0, 1
_CONTINUED = "##"
_CHUNK, _MOST_TOKENS = 5000, 256


def inherit_tokenizer(texts: Sequence[str], teacher: Any, vocabulary_size: int, folder: Path) -> None:
    """Save a tokenizer that `transformers.AutoTokenizer` loads from `folder`.

    Args:
        texts: determine which pieces are frequent.
        teacher: a lower-casing WordPiece tokenizer of transformers.
        vocabulary_size: number of pieces: all single characters that the texts need, then the most frequent ones.
        folder: receives `tokenizer.json` and its configuration.

    Raises:
        InputError: there are more characters than the vocabulary allows.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [PAD, EOS, UNK, *_kept(texts, teacher, vocabulary_size - 3)]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=UNK, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    folder.mkdir(parents=True, exist_ok=True)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNK, model_max_length=512
    ).save_pretrained(folder)


def teacher_pieces(tokenizer: Any, teacher: Any) -> list[str]:
    """Return the teacher's name of each piece of an inherited tokenizer, by id."""
    special = {PAD: teacher.pad_token, EOS: teacher.sep_token, UNK: teacher.unk_token}
    return [special.get(piece, piece) for piece in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]


def _kept(texts: Sequence[str], teacher: Any, room: int) -> list[str]:
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), _CHUNK):
        chunk = list(texts[start : start + _CHUNK])
        encoded = teacher(chunk, add_special_tokens=False, truncation=True, max_length=_MOST_TOKENS)["input_ids"]
        counts.update(token for ids in encoded for token in ids)
    index_of: dict[str, int] = teacher.get_vocab()
    special = set(teacher.all_special_tokens)
    characters = {
        piece
        for piece, index in index_of.items()
        if len(piece.removeprefix(_CONTINUED)) == 1 and (piece.isascii() or counts[index])
    }
    if len(characters) > room:
        raise InputError(
            "vocabulary-too-small",
            field="backbone.vocabulary_size",
            characters=len(characters),
            room=room,
            least=len(characters) + 3,
        )
    frequent = sorted(counts, key=lambda index: (-counts[index], index))
    others = [piece for piece in teacher.convert_ids_to_tokens(frequent) if piece not in characters | special]
    return sorted({*characters, *others[: room - len(characters)]}, key=index_of.__getitem__)
