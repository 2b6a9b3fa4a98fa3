"""A sample of a plain-text corpus to distil on."""

from __future__ import annotations

import lzma
from pathlib import Path

from onboard.making.pretrain.sentences import corpus_texts


def test_texts_to_distil_on_are_a_seeded_sample_of_the_corpus(tmp_path: Path) -> None:
    lines = [f"Sentence number {row} has exactly seven words. Another {row} has five words." for row in range(30)]
    long = [" ".join(f"A passage {row} has many sentences." for _ in range(4)) for row in range(5)]
    corpus = [tmp_path / "corpus.txt", tmp_path / "more.txt.xz"]
    corpus[0].write_text("\n".join(lines), encoding="utf-8")
    with lzma.open(corpus[1], "wt", encoding="utf-8") as file:
        file.write("\n".join(long))
    short, passages = corpus_texts(corpus, 10, 3, seed=0)
    assert (len(short), len(passages)) == (10, 3)
    assert all(5 <= len(text.split()) <= 60 for text in short)
    assert all(text.startswith("A passage") for text in passages)
    assert corpus_texts(corpus, 10, 3, seed=0) == (short, passages)
    assert corpus_texts(corpus, 10, 3, seed=1) != (short, passages)
