"""A word tokenizer over small sources and handwritten texts with made-up vectors."""

from __future__ import annotations

import numpy as np
import pytest
from curriculum_samples import COUNTS, MARK, SUBJECTS, TEXTS, make_sources, vector
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from onboard.making.curriculum import PlainTexts, Source
from onboard.making.curriculum.mentions import MENTIONS
from onboard.making.curriculum.rules import RULES
from onboard.making.curriculum.synonyms import synonyms
from onboard.making.curriculum.workshop import Workshop
from onboard.model.encoding import TextEncoder


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    return make_sources()


@pytest.fixture(scope="session")
def encoder(sources: list[Source]) -> TextEncoder:
    """Lower-cased words of everything that is said or asked here, 48 tokens at most."""
    said = [*TEXTS, MARK, " ".join(str(number) for number in range(2100))]
    said += [text for source in sources for row in source.train for text in (row.text_a, row.text_b) if text]
    said += [word for source in sources for word in source.words]
    said += [other for source in sources for word in source.words for other in synonyms(word)]
    said += [word for rule in RULES for words in rule.wordings for word in words]
    said += [word for mention in MENTIONS for word in mention.words]
    said.append(
        "| . different similar related same unlike alike question review news encyclopedia story caption not no "
        "yes other true false mixed short long medium order number negation cut follows unrelated absent present "
        "changed equal kept altered denied opposite contradiction neutral entailment maybe easy hard formal casual "
        "supported unsupported low high zero one two three four five "
    )
    splitter = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    splitter.normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces = dict.fromkeys(
        piece
        for text in said
        for piece, _ in splitter.pre_tokenizer.pre_tokenize_str(splitter.normalizer.normalize_str(text))
    )
    vocabulary = {piece: number for number, piece in enumerate(["<pad>", "</s>", "<unk>", *pieces])}
    whole = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    whole.normalizer, whole.pre_tokenizer = splitter.normalizer, splitter.pre_tokenizer
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=whole, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )
    return TextEncoder(tokenizer, "|", 48)


@pytest.fixture(scope="session")
def material(sources: list[Source]) -> PlainTexts:
    """Texts of the sources and others; the validation texts are among them, as a careless caller would have it."""
    texts = [
        text
        for source in sources
        for row in (*source.train, *source.validation)
        for text in (row.text_a, row.text_b)
        if text
    ]
    texts = list(dict.fromkeys([*texts, *TEXTS]))
    common = (
        "great awful old film city king large dog school people friend house teacher songs morning hospital street "
        "book happy red mother night better dollars different similar related same story news review "
    )
    words = [*SUBJECTS, *common.split()]
    return PlainTexts(
        texts,
        np.stack([vector(text) for text in texts]).astype(np.float16),
        words,
        np.stack([vector(word) for word in words]).astype(np.float16),
    )


@pytest.fixture(scope="session")
def workshop(sources: list[Source], material: PlainTexts, encoder: TextEncoder) -> Workshop:
    return Workshop(sources, material, COUNTS, encoder, 0)
