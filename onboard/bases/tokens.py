"""Counting a base's tokens without loading torch."""

from __future__ import annotations

from collections.abc import Callable

from onboard.bases import Base


def token_counter(base: Base) -> Callable[[str, str | None], int] | None:
    """Tokens of a text or of a pair with its separator, end token included, before any cutting.

    None when the base's tokenizer is not one `tokenizer.json`.
    """
    path = base.folder / "backbone" / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    separator = str(base.document["pair_separator"])

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return lambda a, b: count(a) + 1 + (0 if b is None else count(separator) + count(b))
