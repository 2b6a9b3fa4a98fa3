"""The warnings about a dataset in words; examples of known form become sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.report.reading import any_label, label_name, listing, mapping, mappings, text

_MOST_LISTED: Final = 5  # rows or labels of one example

Example = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning about the dataset, and a remedy."""

    message: str
    remedy: str
    examples: list[str]
    to_look_at: bool = False  # whether the labeler should look at every example


def dataset_warnings(dataset: Mapping[str, Any]) -> list[Warned]:
    """Return the warnings about the dataset, with a few examples each."""
    return [
        Warned(
            text(warning.get("message")),
            text(warning.get("remedy")),
            [in_words(example) for example in mappings(warning.get("examples"))],
            warning.get("code") == "contradicted_labels",
        )
        for warning in mappings(dataset.get("warnings"))
    ]


def in_words(example: Example) -> str:
    """Describe an example of a warning in a sentence, or list its facts."""
    write = _SENTENCES.get(frozenset(example))
    return write(example) if write else _facts(example)


def _likelier(example: Example) -> str:
    subject = f"Row {text(example['row'])}, {_quoted(example)}," if "row" in example else _quoted(example)
    label, likelier = (label_name(example[key]) for key in ("label", "likelier"))
    return f"{subject} is labeled {label}; {likelier} looks more likely."


def _shared(example: Example) -> str:
    earlier = mapping(example["also_in"])
    rows = [f"{text(row.get('split'))} row {text(row.get('row'))}" for row in (example, earlier)]
    return f"{_quoted(example)}, labeled {label_name(example['label'])}, is {_listed(rows)}."


def _repeated(example: Example) -> str:
    return f"{_quoted(example)}, labeled {label_name(example['label'])}, is {_rows(example)}."


def _conflicting(example: Example) -> str:
    labels = _listed([label_name(label) for label in listing(example["labels"])])
    return f"{_quoted(example)} is {_rows(example)}, labeled {labels}."


def _alike(example: Example) -> str:
    counts = zip(listing(example["labels"]), listing(example["rows"]), strict=False)
    return _listed([f"{label_name(label)} ({_counted(count)})" for label, count in counts])


def _written(example: Example) -> str:
    return f"{label_name(example['label'])} is “{text(example['words'])}” to the base."


def _facts(example: Example) -> str:
    return ", ".join(f"{key.replace('_', ' ')}: {_value(value)}" for key, value in example.items())


_SENTENCES: Final[Mapping[frozenset[str], Callable[[Example], str]]] = {
    frozenset(keys): write
    for keys, write in (
        (("text", "label", "likelier"), _likelier),
        (("row", "text", "label", "likelier"), _likelier),
        (("split", "row", "text", "label", "also_in"), _shared),
        (("split", "row", "text", "label", "rows"), _repeated),
        (("split", "row", "text", "label", "rows", "labels"), _conflicting),
        (("labels", "rows"), _alike),
        (("label", "rows"), lambda example: f"{label_name(example['label'])}: {_counted(example['rows'])}"),
        (("label", "words"), _written),
        (("text", "tokens"), lambda example: f"{_quoted(example)} has {text(example['tokens'])} tokens."),
    )
}


def _quoted(example: Example) -> str:
    return f"“{text(example['text'])}”"


def _rows(example: Example) -> str:
    return f"{text(example['split'])} rows {_listed([text(row) for row in listing(example['rows'])])}"


def _counted(count: Any) -> str:
    return "1 row" if count == 1 else f"{text(count)} rows"


def _value(value: Any) -> str:
    """Format a fact of an example for people."""
    if isinstance(value, Mapping):
        return " ".join(f"{key.replace('_', ' ')} {_value(part)}" for key, part in value.items())
    return _listed([_value(part) for part in value]) if isinstance(value, (list, tuple)) else any_label(value)


def _listed(parts: Sequence[str]) -> str:
    if len(parts) > _MOST_LISTED:
        return f"{', '.join(parts[:_MOST_LISTED])} and {len(parts) - _MOST_LISTED:,} more"
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
