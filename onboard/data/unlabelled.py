"""Texts without labels that are handed in with a dataset, to learn which of them should be labelled next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.data.hashes import text_hash
from onboard.data.problems import Finding
from onboard.domain.dataset import Dataset, Example, in_canonical_rows

MOST_ROWS: Final = 1_000  # that are looked at: four seconds of two cores
NO_LABEL: Final = ""  # what stands in its place where such rows are stored


@dataclass(frozen=True, slots=True)
class Pool:
    """The texts that are looked at.

    Args:
        rows: in canonical order, `MOST_ROWS` at most; their labels mean nothing.
        read: rows of the file.
        known: rows of them whose text is labelled in the dataset already; they are left out.
        repeated: rows of them whose text another row has; it counts once.
    """

    rows: tuple[Example, ...]
    read: int
    known: int
    repeated: int

    @property
    def dataset(self) -> Dataset:
        """What is stored of them."""
        return Dataset("classification", (), self.rows)

    def to_json(self) -> dict[str, Any]:
        """How many rows were read, left out and are looked at."""
        return {"read": self.read, "known": self.known, "repeated": self.repeated, "considered": len(self.rows)}

    def findings(self) -> list[Finding]:
        """A warning where there are more texts than are looked at."""
        left_out = self.read - self.known - self.repeated
        if left_out <= len(self.rows):
            return []
        message = f"{len(self.rows):,} of the {left_out:,} unlabelled texts are looked at, drawn by their content."
        remedy = "To have others looked at, pass a part of the file."
        return [Finding("many_unlabelled", message, left_out - len(self.rows), remedy)]


def pool_of(texts: Sequence[tuple[str, str | None]], labelled: Collection[int]) -> Pool:
    """Draw the pool; it depends on what the rows say and not on their order.

    Args:
        texts: a text, or a pair of them, for each row of the file.
        labelled: `text_hash` of every text that has a label.
    """
    distinct: dict[int, tuple[str, str]] = {}
    known = 0
    for text_a, text_b in texts:
        key = text_hash(text_a, text_b)
        if key in labelled:
            known += 1
            continue
        pair = (text_a, text_b or "")
        distinct[key] = min(distinct.get(key, pair), pair)  # of those that differ in case or blanks alone
    drawn = [distinct[key] for key in sorted(distinct)[:MOST_ROWS]]
    pairs = bool(texts) and texts[0][1] is not None
    rows = in_canonical_rows([Example(text_a, text_b if pairs else None, NO_LABEL) for text_a, text_b in drawn])
    return Pool(rows, len(texts), known, len(texts) - known - len(distinct))
