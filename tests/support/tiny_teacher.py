"""A BERT of a few thousand numbers with a WordPiece tokenizer, in the teacher's place."""

from __future__ import annotations

import string
from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from onboard.making.pretrain.teacher import Teacher

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def make_word_pieces(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """Every letter, digit and mark by itself and as a continuation, a few endings, and the words."""
    characters = [*string.ascii_lowercase, *string.digits, *string.punctuation, "映", "画"]
    pieces = [*SPECIAL, *characters, *(f"##{character}" for character in characters), "##ing", "##s", *words]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


def make_teacher(words: Sequence[str], strength: float = 0.3, spread: float = 0.3, width: int = 16) -> Teacher:
    """Two layers with random weights, always the same.

    Args:
        words: pieces beside the characters.
        strength: deviation of the matrices; at BERT's own 0.02 the layers of so small a model do next to nothing.
        spread: of norms' weights around one and of all biases around zero.
        width: of its states; the feed-forward is twice as wide.
    """
    tokenizer = make_word_pieces(words)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=2 * width, max_position_embeddings=160, initializer_range=strength,
    )  # fmt: skip
    model = BertModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0.0, spread)
            elif "LayerNorm" in name:
                parameter.normal_(1.0, spread)
        model.embeddings.word_embeddings.weight.normal_()
        model.embeddings.position_embeddings.weight.mul_(0.3)
    return Teacher(model, tokenizer)
