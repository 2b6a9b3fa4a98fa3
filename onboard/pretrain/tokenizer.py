"""A unigram tokenizer of its own for a base: lower-cased, without accents, with byte fallback."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PAD, EOS, UNK = "<pad>", "</s>", "<unk>"


def train_tokenizer(texts: Iterable[str], vocabulary_size: int, folder: Path) -> None:
    """Train and save a tokenizer that `transformers.AutoTokenizer` loads from `folder`.

    Args:
        texts: plain texts.
        vocabulary_size: pieces, the special tokens and the 256 bytes included.
        folder: where `tokenizer.json` and its configuration go.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary_size, special_tokens=[PAD, EOS, UNK, *byte_pieces], unk_token=UNK, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    pieces = [(str(piece), float(score)) for piece, score in _pieces(tokenizer)]
    tokenizer.model = models.Unigram(pieces, unk_id=2, byte_fallback=True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    folder.mkdir(parents=True, exist_ok=True)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=EOS, unk_token=UNK, model_max_length=512
    ).save_pretrained(folder)


def _pieces(tokenizer: object) -> list[tuple[str, float]]:
    import json

    vocabulary: list[tuple[str, float]] = json.loads(tokenizer.to_str())["model"]["vocab"]  # type: ignore[attr-defined]  # no stubs
    return vocabulary
