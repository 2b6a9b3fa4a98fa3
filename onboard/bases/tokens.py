"""A base's tokenizer without torch: count tokens, and choose label words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onboard.bases import Base
from onboard.data.verbaliser import Verbaliser, verbalise
from onboard.domain.untrusted_json import parse_json
from onboard.errors import BaseDamagedError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def token_counter(base: Base) -> Callable[[str, str | None], int] | None:
    """Return a function that counts the tokens of a text or a pair, including separator and end, before truncation.

    None if the base's tokenizer is not a single `tokenizer.json`.

    Raises:
        BaseDamagedError: that file cannot be read.
    """
    tokenizer = _tokenizer(base)
    if tokenizer is None:
        return None
    separator = str(base.document["pair_separator"])

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return lambda a, b: count(a) + 1 + (0 if b is None else count(separator) + count(b))


def verbaliser_of(base: Base) -> Verbaliser | None:
    """Return the function that gives labels their words, as in a job on this base.

    None if the base's tokenizer is not a single `tokenizer.json` with its `tokenizer_config.json`.

    Raises:
        BaseDamagedError: one of these files cannot be read.
    """
    tokenizer, config = _tokenizer(base), base.folder / "backbone" / "tokenizer_config.json"
    if tokenizer is None or not config.is_file():
        return None
    unknown = _unknown_token(config)
    unknown_id = None if unknown is None else tokenizer.token_to_id(unknown)

    def token_ids(word: str) -> Sequence[int]:
        ids: list[int] = tokenizer.encode(word, add_special_tokens=False).ids
        return ids

    return partial(verbalise, token_ids=token_ids, unknown_id=unknown_id)


def _tokenizer(base: Base) -> Tokenizer | None:
    path = base.folder / "backbone" / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise BaseDamagedError("base-tokens-unreadable", path=path, reason=error) from error


def _unknown_token(config: Path) -> str | None:
    try:
        token = parse_json(config.read_text(encoding="utf-8")).get("unk_token")
    except (OSError, ValueError, AttributeError) as error:
        raise BaseDamagedError("base-config-unreadable", config=config, reason=error) from error
    return token if isinstance(token, str) else None
