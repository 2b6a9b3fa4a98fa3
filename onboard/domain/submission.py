"""A submission, declared once for the command line, HTTP form, client and documentation."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from onboard.domain.dataset import label_text
from onboard.domain.job import KindChoice, ProbeStrategy, ReadoutChoice, TuneHypernetwork, UnknownLabels
from onboard.domain.names import NAME_PATTERN
from onboard.errors import InputError


@dataclass(frozen=True, slots=True)
class Option:
    """How interfaces present a field of a submission.

    Args:
        checked: whether `onboard check` takes it too, because it affects how rows are read.
        form: help of the HTTP form, if it differs; None: the form does not have the field.
        wrong: for a choice, the description of an invalid value.
        letters: for a repeatable field, the maximum length of each value.
        lines: whether the page offers a multi-line field for many values.
        limits: what the HTTP form accepts, as in JSON Schema: ge, gt, le, lt, pattern, max_length.
        instead: for a former name, the field that replaces it; help and tables omit it.
    """

    help: str
    checked: bool = False
    form: str | None = ""
    wrong: str = ""
    letters: int = 200
    lines: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)
    instead: str = ""


_NAME = {"pattern": NAME_PATTERN}
_SHORT = {"max_length": 200}
# fields that several declarations have
QueueName = Annotated[str, Option("Queue of the job.", limits=_NAME)]
Priority = Annotated[int, Option("Priority; higher is more urgent.", limits={"ge": -(2**31), "lt": 2**31})]
TimeLimit = Annotated[
    float | None, Option("Seconds after which an attempt fails.", limits={"gt": 0, "allow_inf_nan": False})
]
Key = Annotated[str | None, Option("Idempotency key: a request with the same key returns the first job.", form=None)]
TextField = Annotated[Sequence[str], Option("Field of the text; twice for pairs.", limits={"max_length": 2})]
LabelField = Annotated[str | None, Option("Field of the label.", limits=_SHORT)]


@dataclass(frozen=True, slots=True)
class Submission:
    """A dataset, or labels without rows, and the requested job.

    A field that is added here, with its `Option`, becomes an option of `onboard submit`, a field of `POST /v1/jobs`, an
    argument of `onboard.client.Onboard.submit` and a row of docs/reference/http-api.md. Jobs find it in
    `JobSpec.options`.

    Raises:
        InputError: a choice is invalid.
    """

    dataset: Annotated[
        str | Path | None,
        Option(
            "JSONL, CSV, TSV, Parquet (optionally .gz) or Arrow file, folder, or hf://NAME[/CONFIG][@REVISION].",
            checked=True,
            form="JSONL, CSV, TSV, Parquet (plain or gzip) or Arrow; or, as a text, hf://NAME[/CONFIG][@REVISION]. "
            "Without one, the task starts from its labels alone.",
        ),
    ] = None  # fmt: skip
    task: Annotated[
        str | None, Option("Name of the task. Defaults to the file's stem.", checked=True, limits=_NAME)
    ] = None
    _: KW_ONLY
    init: Annotated[
        str,
        Option(
            "Start of the training: auto (best candidate), random, mean, fingerprint, or TASK[@REF].", limits=_SHORT
        ),
    ] = "auto"
    probe: Annotated[
        ProbeStrategy,
        Option(
            "How auto chooses: race, or exhaustive (all candidates on all rows).",
            wrong="is not a strategy of the probe",
        ),
    ] = "race"
    tune_hypernetwork: Annotated[
        TuneHypernetwork,
        Option(
            "Tune the shared hypernetwork as well, if no earlier task loses: never, auto (if worthwhile), always.",
            wrong="is not a choice of --tune-hypernetwork",
        ),
    ] = "auto"
    readout: Annotated[
        ReadoutChoice,
        Option(
            "Add a closed-form readout of the frozen encoder to the answers: never, auto (if it helps).",
            wrong="is not a choice of --readout",
        ),
    ] = "auto"
    method: Annotated[
        str,
        Option(
            "Method. Defaults to an embedding; others: auto, linear, compacter, … (docs/reference/methods.md).",
            limits=_SHORT,
        ),
    ] = ""
    method_setting: Annotated[
        Sequence[str],
        Option("Setting of the method, such as reduction_factor=16. Repeatable.", limits={"max_length": 8}),
    ] = ()
    fast: Annotated[
        bool,
        Option("Stop after the first version, a readout without an embedding, which takes seconds.", checked=True),
    ] = False
    validation: Annotated[str | Path | None, Option("File with the validation split.", checked=True)] = None
    test: Annotated[str | Path | None, Option("File with the test split.", checked=True)] = None
    unlabelled: Annotated[
        str | Path | None,
        Option("File of unlabeled texts, from which the report suggests up to 20 to label next.", checked=True),
    ] = None
    kind: Annotated[
        KindChoice,
        Option(
            "Kind of the task: auto, classification, multilabel (several labels per text) or regression.",
            checked=True,
            wrong="is not a kind of task",
        ),
    ] = "auto"
    labels: Annotated[
        str,
        Option(
            "Label set, A,B,…; any other label is an error. Without a dataset, the task is learned from it alone.",
            checked=True,
            limits={"max_length": 65_536},
        ),
    ] = ""
    label_description: Annotated[
        Sequence[str],
        Option(
            'Description of a label, LABEL=TEXT, such as card="lost or stolen bank card". Repeatable.',
            checked=True,
            letters=1_300,
            lines=True,
            limits={"max_length": 1_000},
        ),
    ] = ()
    unknown_labels: Annotated[
        UnknownLabels,
        Option(
            "Rows with labels outside the label set: refuse or drop.",
            checked=True,
            wrong="is not a choice of --unknown-labels",
        ),
    ] = "refuse"  # fmt: skip
    text_field: Annotated[
        Sequence[str], Option("Field of the text; twice for pairs.", checked=True, limits={"max_length": 2})
    ] = ()
    label_field: Annotated[str | None, Option("Field of the label.", checked=True, limits=_SHORT)] = None
    metric: Annotated[
        str, Option("Deciding metric. Defaults to accuracy or spearman.", checked=True, limits=_SHORT)
    ] = ""
    rows: Annotated[
        int | None,
        Option("Total number of training rows, drawn balanced by label.", checked=True, limits={"ge": 1, "le": 2**31}),
    ] = None
    shots: Annotated[
        int | None,
        Option("Former name of rows.", checked=True, limits={"ge": 1, "le": 2**31}, instead="rows"),
    ] = None
    seed: Annotated[int, Option("Seed of every random draw.", checked=True, limits={"ge": 0, "lt": 2**31})] = 0
    base: Annotated[
        str | None,
        Option(
            "Name or folder of the base. Defaults to ONBOARD_BASE.",
            form="Name of the base. Defaults to the deployment's.",
            limits=_NAME,
        ),
    ] = None
    new_labels: Annotated[bool, Option("Allow a label set that differs from the existing task's.")] = False
    queue: QueueName = "default"
    priority: Priority = 0
    time_limit: TimeLimit = None
    key: Key = None

    def __post_init__(self) -> None:
        if not isinstance(self.labels, str):
            object.__setattr__(self, "labels", _as_csv(self.labels))
        settle_fields(self)
        if self.rows is not None and self.shots is not None:
            raise InputError("rows-and-shots", field="rows", rows=self.rows, shots=self.shots)

    @property
    def training_rows(self) -> int | None:
        """How many rows to train on, in total; None means all."""
        return self.shots if self.rows is None else self.rows


def settle_fields(declared_once: Any) -> None:
    """Normalize the fields of a frozen declaration: a text becomes a list of one, or a path.

    Raises:
        InputError: a choice does not exist, or a list contains something other than texts.
    """
    for declared in fields_of(type(declared_once)):
        value = getattr(declared_once, declared.name)
        if declared.is_file and isinstance(value, str) and declared.name != "dataset":  # which may be on the hub
            object.__setattr__(declared_once, declared.name, Path(value))
        if declared.repeated:
            object.__setattr__(declared_once, declared.name, _as_list(declared, value))
        if declared.choices and value not in declared.choices:
            raise InputError(
                "unknown-choice",
                value=value,
                wrong=declared.option.wrong,
                choices=list(declared.choices),
                **{declared.name: value},
            )


def _as_list(declared: Field, value: Any) -> Sequence[str]:
    """Return a sequence of texts; a single text is not split into characters. Raises InputError."""
    if value is None or isinstance(value, str):
        return () if not value else (value,)
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return value
    raise InputError("argument-not-texts", field=declared.name, value=value)  # fmt: skip


def _as_csv(labels: Any) -> str:
    """Return a list of labels as written on the command line. Raises InputError."""
    if labels is None:
        return ""
    if not isinstance(labels, Sequence):
        raise InputError("labels-not-a-list", field="labels")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([label_text(label) for label in labels])
    return line.getvalue()


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field.

    Args:
        type: without None.
        default: MISSING if it is required.
        option: how interfaces present it.
    """

    name: str
    type: Any
    default: Any
    option: Option

    @property
    def choices(self) -> tuple[str, ...]:
        """Its possible values, if it is a choice."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def repeated(self) -> bool:
        """Whether it may be repeated."""
        return get_origin(self.type) is Sequence

    @property
    def is_file(self) -> bool:
        """Whether it names a file to upload; the dataset may be on the hub as well."""
        return Path in get_args(self.type)

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return "--" + self.name.replace("_", "-")


def fields_of(declaration: type[Any]) -> tuple[Field, ...]:
    """Return the fields of a declaration, in order."""
    hints = get_type_hints(declaration, include_extras=True)
    return tuple(_field(declared.name, hints[declared.name], declared.default) for declared in fields(declaration))


def field_of(option: str) -> str:
    """Return the name of the field that an option sets, such as `label_field` for `--label-field NAME`."""
    return option.split()[0].strip("-").replace("-", "_")


def _field(name: str, hint: Any, default: Any) -> Field:
    kind, option = get_args(hint)
    if NoneType in get_args(kind):
        kind = reduce(or_, (choice for choice in get_args(kind) if choice is not NoneType))
    return Field(name, kind, default, option)


def asked(submission: Any) -> dict[str, Any]:
    """Return the fields that differ from the defaults."""
    values = [(declared, getattr(submission, declared.name)) for declared in fields(submission)]
    return {declared.name: value for declared, value in values if value != declared.default}


def table(declaration: type[Any] = Submission) -> str:
    """Return the fields as a Markdown table, for docs/reference/http-api.md."""
    rows = ["| command | form, client | default | `onboard check` too | meaning |", "|---|---|---|---|---|"]
    for declared in [declared for declared in fields_of(declaration) if not declared.option.instead]:
        default = "" if declared.default in (MISSING, None, "", ()) else f"`{declared.default}`".lower()
        checked = "yes" if declared.option.checked else ""
        rows.append(f"| `{declared.flag}` | `{declared.name}` | {default} | {checked} | {declared.option.help} |")
    return "\n".join(rows)
