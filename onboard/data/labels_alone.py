"""Check a task without labeled rows, defined by its labels and optional unlabeled texts or a test split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from onboard.data.balance import alike_labels
from onboard.data.descriptions import descriptions_of
from onboard.data.duplicates import without_repeats
from onboard.data.labels import settle_labels, typed_labels
from onboard.data.limits import MAX_LABEL_CHARACTERS
from onboard.data.located import Located
from onboard.data.problems import Finding, Problems, preview
from onboard.data.read import Checked, ReadOptions, pool_beside, read_splits, report_of
from onboard.data.rows import LabelColumn, LabelledRow
from onboard.data.settled import LabelOptions
from onboard.data.verbaliser import silent_labels, verbalise, words_finding
from onboard.domain.dataset import Dataset, Label, in_canonical_rows, label_text
from onboard.domain.submission import field_of
from onboard.errors import InputError

SOURCE: Final = "--labels"  # the source in reports, instead of a file
_ORIGIN: Final = LabelColumn(SOURCE, "")


def read_labels(options: ReadOptions) -> Checked:
    """Check the labels of a task without labeled rows, and its test split and unlabeled texts, if any.

    Raises:
        InputError: there are fewer than two labels, one is repeated, labels cannot be distinguished, a description
            belongs to an unknown label, or an option requires rows.
        DatasetError: problems of the files, see `onboard.data.read.read_dataset`.
    """
    _require_labels(options)
    _require_no_rows_asked(options)
    problems = Problems()
    files = {"test": (Path(options.test),)} if options.test is not None else {}
    place = Located(SOURCE, files)
    tables, findings = read_splits(place, options, problems)
    names = {split: place.name_of(paths[0], options.hide_folders) for split, paths in files.items()}
    test = tables.get("test")
    rows: dict[str, list[LabelledRow]] = {"train": [], **({"test": test.rows} if test else {})}
    origins = {"train": _ORIGIN}
    if test:
        origins["test"] = LabelColumn(names["test"], test.fields.label if test.fields else "")
    declared = typed_labels(options.labels, test.labels if test else ())
    asked = LabelOptions(options.kind, declared, options.unknown_labels)
    settled = settle_labels(rows, (), origins, asked, problems)
    pool = pool_beside(tables, options, problems)
    tests, repeats = without_repeats(
        settled.splits.get("test", []), "test", origins.get("test", _ORIGIN), 0.0, problems
    )
    problems.raise_if_any()
    descriptions = descriptions_of(options.descriptions, settled.labels)
    dataset = Dataset("classification", settled.labels, (), test=in_canonical_rows([row.example() for row in tests]))
    words = (options.verbaliser or verbalise)(dataset.labels)
    findings += [*settled.findings, *repeats]
    about_words = _silent(dataset.labels, words, descriptions)
    if about_words is None and options.verbaliser:
        about_words = words_finding(dataset.labels, words)
    findings += [] if about_words is None else [about_words]
    findings += pool.findings() if pool else []
    return Checked(dataset, report_of(place, tables, settled, dataset, words, findings, options), pool)


def _require_labels(options: ReadOptions) -> None:
    """Raise InputError unless there are at least two distinguishable labels."""
    if len(options.labels) < 2:
        raise InputError("labels-too-few", field="labels", labels=list(options.labels))
    longest = max(options.labels, key=lambda label: len(label_text(label)))
    if len(label_text(longest)) > MAX_LABEL_CHARACTERS:
        raise InputError(
            "label-too-long",
            field="labels",
            label=preview(label_text(longest)),
            characters=len(label_text(longest)),
            limit=MAX_LABEL_CHARACTERS,
        )
    repeated = [label for label, count in Counter(map(label_text, options.labels)).items() if count > 1]
    if repeated:
        raise InputError("label-repeated", field="labels", label=repeated[0], repeated=preview(repeated[0]))
    alike = alike_labels(options.labels)
    if alike:
        first, second = (preview(label_text(label)) for label in alike[0])
        raise InputError("labels-read-alike", field="labels", labels=list(alike[0]), first=first, second=second)


def _require_no_rows_asked(options: ReadOptions) -> None:
    """Raise InputError if an option about labeled training rows is given."""
    given = {
        f"--kind {options.kind}": options.kind not in ("auto", "classification"),
        "--validation": options.validation is not None,
        f"--rows {options.shots}": options.shots is not None,
        "--label-field": options.label_field is not None and options.test is None,
        "--text-field": bool(options.text_fields) and options.test is None and options.unlabelled is None,
    }
    for option, is_given in given.items():
        if is_given:
            raise InputError("option-needs-rows", field=field_of(option), option=option)


def _silent(labels: Sequence[Label], words: Sequence[str], descriptions: dict[str, str]) -> Finding | None:
    """Warn about labels without a description whose words say nothing to the base, such as codes and numbers."""
    silent = silent_labels(labels, words, descriptions)
    if not silent:
        return None
    named = ", ".join(repr(preview(label_text(label))) for label in silent[:5])
    message = f"The words of {named}{', …' if len(silent) > 5 else ''} say little to the base, and there are no rows."
    return Finding(
        "labels_say_little", message, len(silent), 'Describe these labels: --label-description LABEL="what it means"'
    )
