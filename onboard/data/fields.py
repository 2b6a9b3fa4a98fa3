"""Find the columns of a file with the text (or two texts) and the label."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from onboard.data.formats import UnreadableError
from onboard.data.problems import preview

_TEXT_FIELDS: Final[tuple[tuple[str, ...], ...]] = (
    ("text_a", "text_b"),
    ("text",),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "passage"),
    ("question", "sentence"),
    ("sentence",),
    ("question",),
    ("review",),
    ("content",),
    ("utterance",),
)
_LABEL_FIELDS: Final = (
    "label",
    "labels",
    "gold_label",
    "coarse_label",
    "class",
    "category",
    "intent",
    "sentiment",
    "target",
    "score",
)
BOOKKEEPING: Final = ("id", "doc_id", "comments", "user", "annotator", "status")  # columns next to texts in exports
_OWN_NAMES: Final = frozenset({"text", "text_a", "text_b"})


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns to read: one or two texts, and the label.

    Args:
        label: the column; with one column per label, the name for all of them in reports.
        indicators: columns of zeros and ones, one per label of a task with several labels per text; else empty.
    """

    texts: tuple[str, ...]
    label: str
    indicators: tuple[str, ...] = ()

    @classmethod
    def of_columns(cls, texts: tuple[str, ...], indicators: tuple[str, ...]) -> Fields:
        """Return the fields for texts and columns of zeros and ones."""
        return cls(texts, f"{len(indicators)} columns of 0 and 1", indicators)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns to read."""
        return (*self.texts, *(self.indicators or (self.label,)))


def resolve_texts(columns: Sequence[str], asked: Sequence[str], questions: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the column of the text, or the two of a pair, as requested or by their usual names (case-insensitive).

    Args:
        questions: columns that annotators filled, if known; if all columns but one are, that one is the text.

    Raises:
        UnreadableError: a requested column does not exist, none has a usual name, there are two possibilities, or a
            name contains characters that cannot be stored.
    """
    return tuple(map(_storable, _texts(columns, asked, questions)))


def require_one_column_each(fields: Sequence[str], doubled: Set[str]) -> None:
    """Raise UnreadableError if a field to read shares its name with another column.

    Args:
        doubled: names of more than one column of the file.
    """
    for name in fields:
        if name in doubled:
            message = f"has two columns called {preview(name)!r}"
            raise UnreadableError("doubled_column", message, "Use each column name once.")


def _texts(columns: Sequence[str], asked: Sequence[str], questions: Sequence[str]) -> tuple[str, ...]:
    if asked:
        if len(set(asked)) < len(asked):
            message = f"has the field {asked[0]!r} as both texts of a pair"
            raise UnreadableError("text_field", message, "Choose two fields: --text-field A --text-field B")
        return tuple(_asked_for(columns, name, "--text-field") for name in asked)
    by_name = _by_name(columns)
    if "text" in by_name and by_name.keys() & {"text_a", "text_b"}:
        mixed = ", ".join(sorted(by_name.keys() & _OWN_NAMES))
        raise UnreadableError(
            "text_field", f"has {mixed}: each may be the text", "Choose one: --text-field text", row=None
        )
    for names in _TEXT_FIELDS:
        if all(name in by_name for name in names):
            return tuple(by_name[name] for name in names)
    others = [name for name in columns if name not in questions and name.casefold() not in BOOKKEEPING]
    if questions and len(others) == 1:
        return (others[0],)
    if "text_a" in by_name or "text_b" in by_name:
        raise UnreadableError("text_field", "has only one of text_a and text_b", "Name a single text column: text")
    remedy = f"Choose one: --text-field NAME (twice for pairs). {_listed(columns)}"
    raise UnreadableError("text_field", "has no known text field", remedy)


def resolve_label(
    columns: Sequence[str], asked: str | None, text_fields: Sequence[str] = (), questions: Sequence[str] = ()
) -> str:
    """Return the column of the label, as requested or by its usual names, other than the columns of the text.

    Args:
        questions: columns that annotators filled, if known; a single one needs no usual name.

    Raises:
        UnreadableError: the requested column does not exist or is the text, none has a usual name, or the name contains
            characters that cannot be stored.
    """
    if asked is not None:
        if asked in text_fields:
            message = f"has the field {asked!r} as the text and as the label"
            raise UnreadableError("label_field", message, "Choose another field: --label-field NAME")
        return _storable(_asked_for(columns, asked, "--label-field"))
    answered = [name for name in questions if name not in text_fields]
    if len(answered) == 1:
        return _storable(answered[0])
    by_name = _by_name(answered or columns)
    for name in _LABEL_FIELDS:
        if name in by_name and by_name[name] not in text_fields:
            return _storable(by_name[name])
    remedy = f"Choose one: --label-field NAME. {_listed(answered or columns)}"
    raise UnreadableError("label_field", "has no known label field", remedy)


def _storable(name: str) -> str:
    """Check that a name can be stored, as the report of the dataset quotes it."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        message = f"has a field name with a control character or half a surrogate pair: {preview(name)}"
        raise UnreadableError("field_name", message, "Rename the field.")
    return name


def _asked_for(columns: Sequence[str], name: str, flag: str) -> str:
    if name not in columns:
        raise UnreadableError("unknown_field", f"has no field {name!r} ({flag})", _listed(columns))
    return name


def _by_name(columns: Sequence[str]) -> dict[str, str]:
    """Return columns by casefolded name; the first one if they differ only in case."""
    return {column.strip().casefold(): column for column in reversed(columns)}


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(map(preview, columns[:12])) + (", …" if len(columns) > 12 else "")
    return f"Its fields: {shown}." if columns else "It has no fields."
