"""Count texts that are longer than the base reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from onboard.data.limits import MAX_EXAMPLES
from onboard.data.problems import Finding, preview
from onboard.domain.dataset import Example

CountTokens = Callable[[str, str | None], int]
"""Returns the number of tokens of a text, or of a pair with its separator, including the end token, untruncated."""

_MOST_COUNTED: Final = 20_000  # rows: enough to estimate the share to a per cent


def cut_finding(examples: Sequence[Example], count_tokens: CountTokens, max_tokens: int) -> Finding | None:
    """Warn if texts will be truncated. Only the first 20,000 rows are counted.

    Args:
        examples: rows of all splits.
        count_tokens: the base's tokenizer; called only for rows that could be too long.
        max_tokens: maximum number of tokens that the base reads.
    """
    counted = list(islice(examples, _MOST_COUNTED))
    long = [row for row in counted if _bytes(row) >= max_tokens]  # a token has at least one byte
    cut = [(row, tokens) for row in long if (tokens := count_tokens(row.text_a, row.text_b)) > max_tokens]
    if not cut:
        return None
    message = (
        f"{len(cut):,} of {len(counted):,} rows are longer than {max_tokens} tokens: only their beginning is read."
    )
    examples_shown = tuple({"text": preview(row.text_a), "tokens": tokens} for row, tokens in cut[:MAX_EXAMPLES])
    return Finding(
        "cut_texts", message, len(cut), "Put the important part first, or shorten the texts.", examples_shown
    )


def _bytes(example: Example) -> int:
    return len(example.text_a.encode()) + len((example.text_b or "").encode()) + 2
