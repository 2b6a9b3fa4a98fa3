"""Read files into a checked dataset and report, or raise one error with all problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onboard.contract.checks import DatasetFields, DatasetReport
from onboard.data.balance import bucket_finding, label_findings
from onboard.data.descriptions import descriptions_of
from onboard.data.duplicates import without_repeats, without_shared
from onboard.data.formats import FileProblems
from onboard.data.hashes import text_hash
from onboard.data.labels import settle_labels
from onboard.data.lengths import CountTokens, cut_finding
from onboard.data.limits import MAX_EXAMPLES, MAX_TOKENS
from onboard.data.located import FromHub, Located, located
from onboard.data.parts import SplitFile, part_findings
from onboard.data.problems import Finding, Problem, Problems, preview
from onboard.data.regression import BUCKETS
from onboard.data.report import report_on
from onboard.data.rows import LabelColumn, LabelledRow, LabelledTable, read_table
from onboard.data.settled import LabelOptions, Settled
from onboard.data.splits import shots
from onboard.data.suspects import contradicted_by_words
from onboard.data.texts import telling_texts
from onboard.data.unlabelled import Pool, pool_of
from onboard.data.vanished import without_vanished
from onboard.data.verbaliser import Verbaliser, verbalise, words_finding
from onboard.domain.dataset import Dataset, Label, example_key, in_canonical_rows, label_key, label_text
from onboard.domain.hub_terms import HubTerms
from onboard.domain.job import KindChoice, UnknownLabels
from onboard.domain.label_set import MULTILABEL, all_labels
from onboard.errors import InputError

_SPLITS: Final = ("train", "validation", "test")
_KINDS: Final = ("auto", "classification", "regression", "multilabel")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read a dataset.

    Args:
        validation: file with the validation split; `test` likewise.
        unlabelled: file with unlabeled texts, for suggestions of what to label next; its labels are ignored.
        kind: auto decides from the labels.
        labels: the label set and its order; empty uses that of the training rows. Strings may represent typed labels.
        descriptions: LABEL=TEXT each, see `onboard.data.descriptions`; an unknown label is an error.
        unknown_labels: what to do with rows with a label outside the label set.
        text_fields: columns of the text or of the two texts; empty means the usual names.
        label_field: column of the label; None means the usual names.
        shots: total number of training rows, drawn balanced; None means all.
        count_tokens: the base's tokenizer, for the warning about truncated texts; None omits it.
        max_tokens: maximum number of tokens that the base reads.
        verbaliser: the base's, for labels' words; None uses no base and omits the warning about them.
        suspects: whether to look for label errors (seconds, up to a few thousand rows).
        hide_folders: omit the folders of files from errors (those of uploads are temporary).
        hub_terms: see `onboard.data.hub.fetch`.
        hub_folder: temporary folder for downloads; None is the system's.
        keep_downloads: keep downloads in the cache of the hub's client, for frequent reads.
    """

    validation: Path | str | None = None
    test: Path | str | None = None
    unlabelled: Path | str | None = None
    kind: KindChoice = "auto"
    labels: tuple[Label, ...] = ()
    descriptions: tuple[str, ...] = ()
    unknown_labels: UnknownLabels = "refuse"
    text_fields: tuple[str, ...] = ()
    label_field: str | None = None
    shots: int | None = None
    seed: int = 0
    count_tokens: CountTokens | None = None
    max_tokens: int = MAX_TOKENS
    verbaliser: Verbaliser | None = None
    suspects: bool = True
    hide_folders: bool = False
    hub_terms: HubTerms | None = None
    hub_folder: Path | None = None
    keep_downloads: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError("unknown-kind", kind=self.kind, kinds=list(_KINDS))
        if self.shots is not None and self.shots < 1:
            raise InputError("too-few-shots", shots=self.shots)
        if self.kind == "regression" and self.labels:
            raise InputError("labels-with-regression")
        if self.kind == MULTILABEL and self.unlabelled is not None:
            raise InputError("unlabelled-with-sets", field="unlabelled")
        if len(self.text_fields) > 2:
            raise InputError("text-field-count", text_fields=list(self.text_fields), count=len(self.text_fields))
        if self.labels and len({label_key(label) for label in self.labels}) < 2:
            if len(self.labels) > 1:
                repeated = label_text(self.labels[0])
                raise InputError("label-repeated", field="labels", label=repeated, repeated=preview(repeated))
            raise InputError("labels-too-few", field="labels", labels=list(self.labels))


@dataclass(frozen=True, slots=True)
class Checked:
    """A dataset that passed the checks, their report, and the unlabeled texts, if any."""

    dataset: Dataset
    report: DatasetReport
    unlabelled: Pool | None = None


def read_dataset(source: Path | str, options: ReadOptions | None = None) -> Checked:
    """Read and check a dataset and draw its splits, for `onboard check` and `onboard submit`.

    Args:
        source: a file, a folder of the `datasets` library, or `hf://NAME[/CONFIG][@REVISION]`.

    Raises:
        DatasetError: `data["problems"]` lists all problems (at most a hundred), `data["problem_count"]` is their
            number.
        InputError: an option is invalid, or the base cannot distinguish the labels.
        NotFoundError, NotAllowedError, UnavailableError: the hub does not have the dataset, refuses it, or is
            unreachable.
    """
    options = options or ReadOptions()
    problems = Problems()
    with _located(source, options) as place:
        names = {split: place.name_of(paths[0], options.hide_folders) for split, paths in place.splits.items()}
        tables, findings = read_splits(place, options, problems)
    require_like_texts(tables, names, problems)
    origins = {
        split: LabelColumn(names[split], table.fields.label if table.fields else "") for split, table in tables.items()
    }
    pool = pool_beside(tables, options, problems)
    rows = {split: table.rows for split, table in tables.items()}
    asked = LabelOptions(options.kind, options.labels, options.unknown_labels)
    settled = settle_labels(rows, tables["train"].labels, origins, asked, problems)
    splits, repeats = _without_repeats(settled, origins, problems)
    problems.raise_if_any()
    settled, splits, vanished = without_vanished(settled, splits, declared=bool(options.labels))
    if settled.kind == MULTILABEL and pool is not None:
        raise InputError("unlabelled-with-sets", field="unlabelled")
    descriptions_of(options.descriptions, settled.labels)
    splits, shared = without_shared(splits)
    dataset = _drawn(settled, splits, options)
    findings += [*settled.findings, *repeats, *vanished, *shared, *_shot_findings(splits["train"], options)]
    words = (options.verbaliser or verbalise)(dataset.labels)
    findings += _dataset_findings(dataset, splits["train"], words, options)
    findings += pool.findings() if pool else []
    return Checked(dataset, report_of(place, tables, settled, dataset, words, findings, options), pool)


def _located(source: Path | str, options: ReadOptions) -> AbstractContextManager[Located]:
    extra = {"validation": options.validation, "test": options.test}
    named = {split: Path(path) for split, path in extra.items() if path is not None}
    from_hub = FromHub(options.hub_terms, options.hub_folder, options.keep_downloads)
    return located(source, shown_name(Path(source), options), named, from_hub)


def shown_name(path: Path, options: ReadOptions) -> str:
    """Return a file's name for errors."""
    return path.name if options.hide_folders else str(path)


def read_splits(
    place: Located, options: ReadOptions, problems: Problems
) -> tuple[dict[str, LabelledTable], list[Finding]]:
    """Return the usable rows of every split, and warnings about those left out."""
    tables: dict[str, LabelledTable] = {}
    findings = list(place.findings)
    for split, paths in place.splits.items():
        own = Problems()
        parts = _read_parts(place, paths, options)
        files = [part for part in parts if not part.is_empty] or parts
        for part in files:
            own.merge(part.problems)
        tables[split] = files[0].table if len(files) == 1 else _joined([part.table for part in files])
        if (
            split in place.together
            and split != "train"
            and set(own.counts) == {"missing_label"}
            and not tables[split].rows
        ):
            findings.append(Finding("unlabelled_split", f"The {split} split has no labels: skipped.", own.count))
            del tables[split]
        else:
            problems.merge(own)
            findings += part_findings(split, parts, files)
    return tables, findings


def _read_parts(place: Located, paths: Sequence[Path], options: ReadOptions) -> list[SplitFile]:
    parts: list[SplitFile] = []
    for path in paths:
        name, own = place.name_of(path, options.hide_folders), Problems()
        table = read_table(
            path, FileProblems(own, name), options.text_fields, options.label_field, place.class_names, options.kind
        )
        parts.append(SplitFile(name, table, own))
    return parts


def _joined(parts: Sequence[LabelledTable]) -> LabelledTable:
    """Combine several files of one split, with consecutive row numbers."""
    rows = [row for part in parts for row in part.rows]
    numbered = [row._replace(number=number) for number, row in enumerate(rows, start=1)]
    labels = {label_key(label): label for part in parts for label in part.labels}
    return LabelledTable(numbered, tuple(labels.values()), parts[0].fields)


def require_like_texts(tables: Mapping[str, LabelledTable], names: Mapping[str, str], problems: Problems) -> None:
    """Add a problem for every split whose rows have a different number of texts than the training rows."""
    train = tables["train"].fields
    for split, table in tables.items():
        if train and table.fields and len(table.fields.texts) != len(train.texts):
            kinds = ("one text", "pairs of texts")
            message = f"has {kinds[len(table.fields.texts) - 1]} a row, training has {kinds[len(train.texts) - 1]}"
            problems.add(Problem("text_field", message, names[split], remedy="Use the same fields in all splits."))


def pool_beside(tables: Mapping[str, LabelledTable], options: ReadOptions, problems: Problems) -> Pool | None:
    """Return the texts of `options.unlabelled` that no row of these splits has; None if there are none."""
    if options.unlabelled is None:
        return None
    path, own = Path(options.unlabelled), Problems()
    name = shown_name(path, options)
    texts = [tuple(row.values()) for row in telling_texts(path, options.text_fields, FileProblems(own, name))]
    problems.merge(own)
    if own.count or not texts or any(table.fields is None for table in tables.values()):
        return None
    split, fields = next(((split, table.fields) for split, table in tables.items()), ("", None))
    if fields and len(texts[0]) != len(fields.texts):
        kinds = ("one text", "a pair of texts")
        named = "training" if split == "train" else f"the {split} split"
        message = f"has {kinds[len(texts[0]) - 1]} a row, {named} has {kinds[len(fields.texts) - 1]}"
        problems.add(Problem("text_field", message, name, remedy="Use the same fields as in the dataset."))
        return None
    labelled = {text_hash(row.text_a, row.text_b) for table in tables.values() for row in table.rows}
    pool = pool_of([(row[0], row[1] if len(row) > 1 else None) for row in texts], labelled)
    if not pool.rows:
        remedy = "Pass texts that are not in the dataset, or leave out --unlabelled."
        problems.add(Problem("all_labelled", "has no text that is not already labeled", name, remedy=remedy))
    return pool


def _without_repeats(
    settled: Settled, origins: Mapping[str, LabelColumn], problems: Problems
) -> tuple[dict[str, list[LabelledRow]], list[Finding]]:
    tolerance = 0.0
    if settled.low is not None and settled.high is not None:
        tolerance = (settled.high - settled.low) / (BUCKETS - 1)
    splits: dict[str, list[LabelledRow]] = {}
    findings: list[Finding] = []
    for split, rows in settled.splits.items():
        splits[split], repeats = without_repeats(rows, split, origins[split], tolerance, problems)
        findings += repeats
    if not problems.count and len({label_key(row.label) for row in splits["train"]}) < 2:
        message = "has fewer than two labels after conflicting rows are dropped"
        problems.add(Problem("one_label", message, origins["train"].file, remedy="Decide on one label for each text."))
    return splits, findings


def _drawn(settled: Settled, splits: Mapping[str, list[LabelledRow]], options: ReadOptions) -> Dataset:
    rows = {split: in_canonical_rows([row.example() for row in splits.get(split, [])]) for split in _SPLITS}
    values = [float(row.label) for row in splits["train"]] if settled.kind == "regression" else []
    dataset = Dataset(
        settled.kind, settled.labels, **rows, low=min(values, default=None), high=max(values, default=None)
    )
    return dataset if options.shots is None else shots(dataset, options.shots, options.seed)


def _shot_findings(train: list[LabelledRow], options: ReadOptions) -> list[Finding]:
    if options.shots is None or options.shots <= len(train):
        return []
    message = f"--rows {options.shots:,} asks for more than the {len(train):,} rows there are: all are used."
    return [Finding("few_rows", message, len(train))]


def _dataset_findings(
    dataset: Dataset, train: list[LabelledRow], words: Sequence[str], options: ReadOptions
) -> list[Finding]:
    findings: list[Finding | None] = []
    if dataset.kind != "regression":
        findings += label_findings(dataset.labels, all_labels(dataset.kind, dataset.train))
        findings.append(words_finding(dataset.labels, words) if options.verbaliser else None)
    if dataset.kind == "classification":
        findings.append(_suspects(dataset, train) if options.suspects else None)
    elif dataset.kind == "regression":
        findings.append(bucket_finding([float(row.label) for row in dataset.train]))
    if options.count_tokens is not None:
        rows = (*dataset.train, *dataset.validation, *dataset.test)
        findings.append(cut_finding(rows, options.count_tokens, options.max_tokens))
    return [finding for finding in findings if finding is not None]


def _suspects(dataset: Dataset, train: list[LabelledRow]) -> Finding | None:
    suspects = contradicted_by_words(dataset.train)
    if not suspects:
        return None
    numbers = {example_key(row.example()): row.number for row in train}
    likelier = {label_key(label): label for label in dataset.labels}
    examples = tuple(
        {
            "row": numbers[example_key(dataset.train[index])],
            "text": preview(dataset.train[index].text_a),
            "label": dataset.train[index].label,
            "likelier": likelier[key],
        }
        for index, key in suspects[:MAX_EXAMPLES]
    )
    first = examples[0]
    message = (
        f"{len(suspects):,} training rows look mislabeled, first row {first['row']}: "
        f"{label_text(dataset.train[suspects[0][0]].label)!r} rather than {label_text(likelier[suspects[0][1]])!r}?"
    )
    return Finding(
        "suspected_label_errors", message, len(suspects), "Check these rows; they are used unchanged.", examples
    )


def report_of(
    place: Located,
    tables: Mapping[str, LabelledTable],
    settled: Settled,
    dataset: Dataset,
    words: Sequence[str],
    findings: list[Finding],
    options: ReadOptions,
) -> DatasetReport:
    """Return the report on a dataset."""
    fields = next((table.fields for table in tables.values()), None)
    return report_on(
        dataset,
        words,
        findings,
        DatasetFields(text=fields.texts if fields else (), label=fields.label if fields else ""),
        options.seed,
        source=place.source,
        revision=place.revision,
        kind_reason=settled.reason,
        rows_read={split: len(tables[split].rows) if split in tables else 0 for split in _SPLITS},
    )
