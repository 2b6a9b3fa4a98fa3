"""Unlabeled texts that are submitted with a dataset, to suggest which ones to label next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.data.hashes import text_hash
from onboard.data.problems import Finding
from onboard.domain.dataset import Dataset, Example, in_canonical_rows

MOST_ROWS: Final = 1_000  # texts that are examined: four seconds on two cores
NO_LABEL: Final = ""  # placeholder label where such rows are stored


@dataclass(frozen=True, slots=True)
class Pool:
    """The texts to examine.

    Args:
        rows: in canonical order, at most `MOST_ROWS`; their labels are meaningless.
        read: rows of the file.
        known: rows with a text that the dataset already contains with a label; they are left out.
        repeated: rows with the text of another row, which counts once.
    """

    rows: tuple[Example, ...]
    read: int
    known: int
    repeated: int

    @property
    def dataset(self) -> Dataset:
        """The stored form of the texts."""
        return Dataset("classification", (), self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return how many rows were read, left out and are examined."""
        return {"read": self.read, "known": self.known, "repeated": self.repeated, "considered": len(self.rows)}

    def findings(self) -> list[Finding]:
        """Warn if there are more texts than are examined."""
        left_out = self.read - self.known - self.repeated
        if left_out <= len(self.rows):
            return []
        message = f"{len(self.rows):,} of the {left_out:,} unlabeled texts are used, sampled by content."
        remedy = "To use other texts, pass a part of the file."
        return [Finding("many_unlabelled", message, left_out - len(self.rows), remedy)]


def pool_of(texts: Sequence[tuple[str, str | None]], labelled: Collection[int]) -> Pool:
    """Draw the texts; the result depends on their content, not on their order.

    Args:
        texts: a text, or a pair, for each row of the file.
        labelled: `text_hash` of every text with a label.
    """
    distinct: dict[int, tuple[str, str]] = {}
    known = 0
    for text_a, text_b in texts:
        key = text_hash(text_a, text_b)
        if key in labelled:
            known += 1
            continue
        pair = (text_a, text_b or "")
        distinct[key] = min(distinct.get(key, pair), pair)  # of those that differ only in case or whitespace
    drawn = [distinct[key] for key in sorted(distinct)[:MOST_ROWS]]
    pairs = bool(texts) and texts[0][1] is not None
    rows = in_canonical_rows([Example(text_a, text_b if pairs else None, NO_LABEL) for text_a, text_b in drawn])
    return Pool(rows, len(texts), known, len(texts) - known - len(distinct))
