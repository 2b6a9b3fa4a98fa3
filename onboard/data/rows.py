"""Read a file's usable rows, and report problems of single rows (text, label, encoding)."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from sys import getsizeof
from typing import Final, NamedTuple

from onboard.data import hub
from onboard.data.annotators import LeftOut, agreed
from onboard.data.fields import Fields, require_one_column_each, resolve_label, resolve_texts
from onboard.data.folders import is_folder
from onboard.data.formats import FileProblems, Reader, Row, RowError, UnreadableError, open_reader
from onboard.data.formats.budget import too_large
from onboard.data.formats.source import format_of
from onboard.data.invisible import code_points, visible
from onboard.data.label_lists import checked_labels, indicated, indicators_of, list_in, parted, separator_of
from onboard.data.limits import MAX_LABEL_CHARACTERS, MAX_ROWS, MAX_TEXT_MEMORY_BYTES
from onboard.data.problems import Problems, preview
from onboard.domain.dataset import Example, Label, label_key
from onboard.domain.job import KindChoice
from onboard.domain.label_set import MULTILABEL, set_text
from onboard.domain.limits import MAX_TEXT_CHARACTERS

UNKNOWN_LABEL_CODES: Final = frozenset(
    {"missing_label", "nan_label", "label_type", "label_too_long"}
    | {"bad_json", "not_an_object", "line_too_long", "not_utf8", "field_count", "bad_csv"}
)
"""Problems that leave the intended label of a row unknown."""


class LabelledRow(NamedTuple):
    """A usable row with its position: row number from 1, line for CSV and TSV, else None.

    members: the labels of a row with a list of them, as written; None for a row with one label.
    """

    number: int
    line: int | None
    text_a: str
    text_b: str | None
    label: Label
    members: tuple[Label, ...] | None = None

    @property
    def labels(self) -> tuple[Label, ...]:
        """Its labels, whether a list or one."""
        return (self.label,) if self.members is None else self.members

    def example(self) -> Example:
        """The row without its position."""
        return Example(self.text_a, self.text_b, self.label)


class LabelColumn(NamedTuple):
    """The origin of labels, for messages: the file and its column."""

    file: str
    field: str


class LabelledTable(NamedTuple):
    """The usable rows of a file, every label of any row (usable or not), and the columns of both.

    left_out: rows of a labeling tool's export without an agreed label. blank_rows: number of rows of separators only,
    which were skipped.
    """

    rows: list[LabelledRow]
    labels: tuple[Label, ...]
    fields: Fields | None
    left_out: LeftOut | None = None
    blank_rows: int = 0


def read_table(
    path: Path,
    problems: FileProblems,
    text_fields: tuple[str, ...],
    label_field: str | None,
    class_names: Mapping[str, tuple[str, ...]] | None = None,
    kind: KindChoice = "auto",
) -> LabelledTable:
    """Read every usable row of the file; problems go to `problems`, nothing is raised.

    Args:
        class_names: see `Reader.class_names`, if the file itself has none.
        kind: the requested kind of the task: it decides whether a cell of text may contain several labels.
    """
    with telling(path, problems):
        reader = open_reader(path, problems)
        columns = reader.columns()
        questions = reader.tool.questions if reader.tool else ()

        def indicators(texts: tuple[str, ...]) -> tuple[str, ...]:
            if label_field is not None or questions or kind not in ("auto", MULTILABEL):
                return ()
            return indicators_of(open_reader(path, FileProblems(Problems(), problems.file)), texts)

        fields = _resolve((columns, questions), text_fields, label_field, problems, indicators, kind)
        if fields is not None:
            require_one_column_each(fields.all, reader.doubled())
            one_label = kind not in ("auto", MULTILABEL)
            require_plain(reader, fields.texts, None if fields.indicators else fields.label, lists=not one_label)
            names = reader.class_names().get(fields.label) or (class_names or {}).get(fields.label, ())
            return _usable(reader, fields, names, problems, kind)
        for _ in reader.rows(()):  # unparsable rows are reported all the same
            pass
        if not problems.any:
            raise UnreadableError("text_field", "has no fields", 'Each row needs "text" and "label".')
    return LabelledTable([], (), None)


def require_format(source: Path | str) -> None:
    """Raise DatasetError unless the file exists and has a supported format; the hub and folders are checked later."""
    if str(source).startswith(hub.SCHEME) or is_folder(source):
        return
    problems = Problems()
    with telling(Path(source), FileProblems(problems, str(source))):
        format_of(Path(source))
    problems.raise_if_any()


@contextmanager
def telling(path: Path, problems: FileProblems) -> Iterator[None]:
    """Collect the error that ends the reading of a file instead of raising it."""
    try:
        yield
    except UnreadableError as error:
        problems.add_unreadable(error)
    except PermissionError:
        problems.add("unreadable_file", "may not be read", f"Allow it: chmod a+r {path}")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problems.add("bad_gzip", f"is damaged gzip ({error})", "Compress it again.")
    except OSError as error:
        problems.add("unreadable_file", f"cannot be read: {error.strerror or error}", "Check the file.")


def _resolve(
    known: tuple[tuple[str, ...], tuple[str, ...]],
    text_fields: tuple[str, ...],
    label_field: str | None,
    problems: FileProblems,
    indicators: Callable[[tuple[str, ...]], tuple[str, ...]],
    kind: KindChoice,
) -> Fields | None:
    """Return the fields among the columns, including the questions of a labeling tool.

    Args:
        indicators: finds columns of 0 and 1, given those of the text.
    """
    columns, questions = known
    texts: tuple[str, ...] = ()
    label = ""
    if not columns:  # no row could be parsed, which is reported by row
        return None
    try:
        texts = resolve_texts(columns, text_fields, questions)
    except UnreadableError as error:
        problems.add_unreadable(error)
    try:
        label = resolve_label(columns, label_field, texts, questions)
    except UnreadableError as error:
        found = indicators(texts) if texts else ()
        if found:
            return Fields.of_columns(texts, found)
        problems.add_unreadable(error)
    if texts and label and kind == MULTILABEL and label in (found := indicators(texts)):
        return Fields.of_columns(texts, found)
    return Fields(texts, label) if texts and label else None


def require_plain(reader: Reader, texts: Sequence[str], label: str | None = None, *, lists: bool = False) -> None:
    """Raise UnreadableError if a field is an image, a list or an object according to the schema.

    Args:
        lists: whether the label may be a list.
    """
    kinds = {name: kind for name, kind in reader.kinds().items() if not (lists and name == label and kind == "a list")}
    for name in (*texts, *([] if label is None else [label])):
        if name in kinds:
            is_label = name == label
            message = f"has {kinds[name]} in the field {name!r}, where a {'label' if is_label else 'text'} goes"
            others = ", ".join(preview(column) for column in reader.columns() if column not in kinds) or "none"
            remedy = f"Name another: {'--label-field' if is_label else '--text-field'} NAME. Plain fields: {others}."
            raise UnreadableError("label_type" if is_label else "text_type", message, remedy)


def _usable(
    reader: Reader, fields: Fields, class_names: tuple[str, ...], problems: FileProblems, kind: KindChoice
) -> LabelledTable:
    check_label = _label_check(class_names, typed=reader.typed)
    check = _labels_check(fields, check_label, kind, typed=reader.typed)
    rows: list[LabelledRow] = []
    labels: dict[str, Label] = {}
    taken_bytes, read = 0, _Counted(reader.rows(fields.all))
    left_out = LeftOut(reader.tool.name) if reader.tool else None
    for row in agreed(read, reader.tool, fields, left_out, kind) if reader.tool and left_out else read:
        texts = checked_texts(row, fields.texts, problems)
        try:
            answer = check(row)
        except RowError as error:
            problems.add(error.code, error.message, error.remedy, row=row.number, line=row.line, field=fields.label)
            continue
        listed = answer if isinstance(answer, tuple) else (answer,)
        if not isinstance(answer, _Cell):
            labels |= {label_key(label): label for label in listed}
        if None in texts:
            continue
        text_a, text_b = str(texts[0]), str(texts[1]) if len(texts) > 1 else None
        taken_bytes += getsizeof(text_a) + (getsizeof(text_b) if text_b else 0)
        if taken_bytes > MAX_TEXT_MEMORY_BYTES:
            raise too_large(row.number)
        members = answer if isinstance(answer, tuple) else None
        label = answer if not isinstance(answer, tuple) else set_text(answer)
        rows.append(LabelledRow(row.number, row.line, text_a, text_b, label, members))
    if any(isinstance(row.label, _Cell) for row in rows):
        rows = list(_parted(rows, check_label, fields.label, problems))
        labels = {label_key(label): label for row in rows for label in row.labels}
    if not (rows or labels or problems.any):
        raise _empty(left_out if read.seen else None)
    return LabelledTable(rows, tuple(labels.values()), fields, left_out, problems.blank_rows)


class _Counted:
    """Passes rows on, up to the limit per file."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.seen = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.seen += 1
            require_few(self.seen)
            yield row


def _empty(left_out: LeftOut | None) -> UnreadableError:
    if left_out is None:
        return UnreadableError("empty_file", "has no rows")
    findings = left_out.findings("train")
    reasons = ", ".join(f"{finding.count:,} {finding.code.replace('_', ' ')}" for finding in findings)
    message = f"is an export of {left_out.tool} without a row that has one label ({reasons})"
    return UnreadableError("empty_file", message, findings[0].remedy)


def require_few(seen: int) -> None:
    """Raise UnreadableError if there are too many rows in the file."""
    if seen > MAX_ROWS:
        message = f"has more than {MAX_ROWS:,} rows"
        raise UnreadableError("too_many_rows", message, "Pass fewer rows; a few thousand are enough.")


def checked_texts(row: Row, fields: Sequence[str], problems: FileProblems) -> list[Label | None]:
    """Return the texts of a row; None for one that is invalid, which is reported."""
    return [_checked(row, field, _check_text, problems) for field in fields]


def _checked(row: Row, field: str, check: Callable[[object], Label], problems: FileProblems) -> Label | None:
    try:
        return check(row.values.get(field))
    except RowError as error:
        problems.add(error.code, error.message, error.remedy, row=row.number, line=row.line, field=field)
        return None


def _check_text(value: object) -> str:
    if value is None:
        raise RowError("missing_text", "the text is missing", "Add a text or delete the row.")
    if isinstance(value, bytes):
        value = _decoded(value)
    if not isinstance(value, str):
        message = f"the text is {_type_name(value)}, not a string"
        raise RowError("text_type", message, "Write texts as strings.")
    text = value.strip()
    if not visible(text).strip():
        message = (
            f"the text holds nothing that is seen, only {', '.join(code_points(text))}" if text else "the text is empty"
        )
        raise RowError("empty_text", message, "Add a text or delete the row.")
    if len(text) > MAX_TEXT_CHARACTERS:
        message = f"the text has {len(text):,} characters; the limit is {MAX_TEXT_CHARACTERS:,}"
        raise RowError("text_too_long", message, "Shorten the text; only its beginning is read.")
    return _encodable(text)


class _Cell(str):
    """A cell that may contain several labels; its separator is known after the whole file is read."""

    __slots__ = ()


def _labels_check(
    fields: Fields, check: Callable[[object], Label], kind: KindChoice, *, typed: bool
) -> Callable[[Row], Label | tuple[Label, ...]]:
    """Return a function that extracts the label of a row, or its list of labels. It raises RowError."""

    def labels_of(row: Row) -> Label | tuple[Label, ...]:
        if fields.indicators:
            return indicated(row.values, fields.indicators)
        value = row.values.get(fields.label)
        if isinstance(value, bytes):
            value = _decoded(value)
        if kind in ("auto", MULTILABEL):
            listed = list_in(value, typed=typed)
            if listed is not None:
                return checked_labels(listed, check)
            if kind == MULTILABEL and isinstance(value, str):
                return _Cell(value)
        return check(value)

    return labels_of


def _parted(
    rows: Sequence[LabelledRow], check: Callable[[object], Label], field: str, problems: FileProblems
) -> Iterator[LabelledRow]:
    """Yield the rows with their cells split into lists of labels."""
    separator = separator_of(row.label for row in rows if isinstance(row.label, _Cell))
    for row in rows:
        if not isinstance(row.label, _Cell):
            yield row
            continue
        try:
            members = checked_labels(parted(row.label, separator), check)
        except RowError as error:
            problems.add(error.code, error.message, error.remedy, row=row.number, line=row.line, field=field)
        else:
            yield row._replace(label=set_text(members), members=members)


def _label_check(class_names: tuple[str, ...], *, typed: bool) -> Callable[[object], Label]:
    def check(value: object) -> Label:
        if isinstance(value, bytes):
            value = _decoded(value)
        if isinstance(value, date | time):
            value = value.isoformat()  # like data frames and text files do
        if value is None or (isinstance(value, str) and not value.strip()):
            raise RowError("missing_label", "the label is missing", "Add a label or delete the row.")
        if class_names:
            return _class_name(value if typed else _number(value), class_names)
        if isinstance(value, str):
            value = value.strip()  # as for texts
        if isinstance(value, float):
            return _finite(value)
        if not isinstance(value, str | bool | int):
            message = f"the label is {_type_name(value)}, not a string, number or boolean"
            remedy = "Use one label per row."
            if isinstance(value, list | tuple):
                remedy = "Use one label per row, or allow several: --kind multilabel"
            raise RowError("label_type", message, remedy)
        if not typed and isinstance(value, str) and value.strip().casefold() == "nan":
            remedy = "Delete the row; if nan is a label, pass the data as JSONL."
            raise RowError("nan_label", "the label is NaN", remedy)
        return _short(value)

    return check


def _number(value: object) -> object:
    """Convert the text of a CSV or TSV cell to a number, if it is one."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()) else value


def _class_name(value: object, names: tuple[str, ...]) -> Label:
    if isinstance(value, str) and (value in names or value.strip() in names):
        return _short(value if value in names else value.strip())
    if not isinstance(value, int):
        message = f"the label is {_type_name(value)}, though the file's schema says ClassLabel"
        raise RowError("label_type", message, "Write the file again.")
    if value == -1:
        raise RowError("missing_label", "the label is -1, which means unlabeled", "Delete unlabeled rows.")
    if not 0 <= value < len(names):
        message = f"the label is {value}, but the file names only 0 to {len(names) - 1}"
        raise RowError("label_type", message, "Write the file again.")
    return _short(names[value])


def _finite(value: float) -> float:
    if math.isnan(value):
        raise RowError("nan_label", "the label is NaN", "Add a label or delete the row.")
    if math.isinf(value):
        raise RowError("nan_label", "the label is infinite", "Use a finite number, or delete the row.")
    return value + 0.0  # -0.0 and 0.0 are one label


def _short(label: Label) -> Label:
    text = str(label)
    if len(text) > MAX_LABEL_CHARACTERS:
        message = f"the label has {len(text)} characters; the limit is {MAX_LABEL_CHARACTERS}"
        raise RowError("label_too_long", message, "Check the label field: --label-field NAME")
    if any(unicodedata.category(character) == "Cc" for character in text):
        message = f"the label {preview(text)!r} contains a control character"
        raise RowError("label_type", message, "Write the label without line breaks, tabs or other control characters.")
    _encodable(text)
    return label


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start} of the text)"
        raise RowError("not_utf8", message, "Save the file as UTF-8.") from error


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"is not UTF-8: half a surrogate pair (character {error.start})"
        raise RowError("not_utf8", message, "Write the character in full, or remove it.") from error
    return text


def _type_name(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return "a boolean"
    return "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
