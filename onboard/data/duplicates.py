"""Find repeated rows: exact duplicates, texts with different labels, rows shared by splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onboard.data.hashes import text_hash
from onboard.data.invisible import visible
from onboard.data.limits import MAX_CONFLICT_SHARE, MAX_EXAMPLES
from onboard.data.problems import Finding, Problem, Problems, preview
from onboard.data.rows import LabelColumn, LabelledRow
from onboard.domain.counting import counted
from onboard.domain.dataset import label_key

Rows = list[LabelledRow]


def without_repeats(
    rows: Rows, split: str, origin: LabelColumn, tolerance: float, problems: Problems
) -> tuple[Rows, list[Finding]]:
    """Remove exact duplicates (keeping the first) and conflicts (all of them).

    A conflict is the same text or pair with another label, ignoring case, whitespace and invisible characters; only the
    author can decide which label is right. Conflicts in more than a tenth of the rows are a problem.

    Args:
        tolerance: maximum difference of two regression values of one text; 0 for classes.
    """
    alike = _groups(rows, _alike)
    conflicts: list[Rows] = []
    duplicates: list[Rows] = []
    for group in alike:
        if _conflicting(group, tolerance):
            conflicts.append(group)
        else:
            same = _groups(group, lambda row: (row.text_a, row.text_b))
            duplicates += [copies for rows_of_text in same for copies in _copies(rows_of_text)]
    findings = _conflict_findings(conflicts, len(rows), split, origin, problems) + _duplicate_findings(
        duplicates, split
    )
    dropped = {row.number for group in conflicts for row in group}
    dropped |= {row.number for copies in duplicates for row in copies[1:]}
    return [row for row in rows if row.number not in dropped], findings


def without_shared(splits: Mapping[str, Rows]) -> tuple[dict[str, Rows], list[Finding]]:
    """Remove from each split the rows with a text of an earlier split, ignoring labels, case and whitespace."""
    if len(splits) == 1:
        return dict(splits), []
    seen: dict[int, tuple[str, int]] = {}
    firsts: dict[str, Rows] = {}
    findings = []
    for split, rows in splits.items():
        hashes = [_alike(row) for row in rows]
        shared = [(row, seen[key]) for row, key in zip(rows, hashes, strict=True) if key in seen]
        firsts[split] = [row for row, key in zip(rows, hashes, strict=True) if key not in seen]
        seen.update({key: (split, row.number) for row, key in zip(rows, hashes, strict=True) if key not in seen})
        if shared:
            examples = tuple(
                {**_shown(row, split), "also_in": {"split": earlier, "row": number}}
                for row, (earlier, number) in shared[:MAX_EXAMPLES]
            )
            left = "" if firsts[split] else f"; no row of the {split} split is left"
            repeated = counted(len(shared), "row")
            message = f"{repeated} of the {split} split also in an earlier split: dropped from {split}{left}."
            findings.append(Finding("shared_rows", message, len(shared), "Split the data again.", examples))
    return firsts, findings


def _alike(row: LabelledRow) -> int:
    """Return a key of the text or pair that ignores case, whitespace and invisible characters."""
    return text_hash(visible(row.text_a), None if row.text_b is None else visible(row.text_b))


def _groups(rows: Rows, key: Callable[[LabelledRow], object]) -> list[Rows]:
    """Return groups of similar rows with more than one row."""
    groups: dict[object, Rows] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [group for group in groups.values() if len(group) > 1]


def _conflicting(group: Rows, tolerance: float) -> bool:
    if tolerance:
        values = [float(row.label) for row in group]
        return max(values) - min(values) > tolerance
    return len({label_key(row.label) for row in group}) > 1


def _copies(group: Rows) -> list[Rows]:
    """Return the rows of one text by label, for labels that occur more than once."""
    by_label: dict[str, Rows] = {}
    for row in group:
        by_label.setdefault(label_key(row.label), []).append(row)
    return [copies for copies in by_label.values() if len(copies) > 1]


def _conflict_findings(
    conflicts: Sequence[Rows], total: int, split: str, origin: LabelColumn, problems: Problems
) -> list[Finding]:
    if not conflicts:
        return []
    count = sum(len(group) for group in conflicts)
    remedy = "Decide on one label for each text."
    if count > MAX_CONFLICT_SHARE * total:
        first, other = _opposed(conflicts[0])
        message = (
            f"{count:,} of {total:,} rows ({count / total:.0%}) have a text that has another label elsewhere, "
            f"as rows {first.number} ({label_key(first.label)}) and {other.number} ({label_key(other.label)})"
        )
        problems.add(Problem("conflicting_labels", message, origin.file, field=origin.field, remedy=remedy))
        return []
    examples = tuple(
        {**_shown(group[0], split), "rows": [row.number for row in group], "labels": [row.label for row in group]}
        for group in conflicts[:MAX_EXAMPLES]
    )
    message = f"{counted(count, 'row')} of the {split} split with a text that has another label elsewhere: all dropped."
    return [Finding("conflicting_labels", message, count, remedy, examples)]


def _opposed(group: Rows) -> tuple[LabelledRow, LabelledRow]:
    return group[0], next(row for row in group if label_key(row.label) != label_key(group[0].label))


def _duplicate_findings(duplicates: Sequence[Rows], split: str) -> list[Finding]:
    if not duplicates:
        return []
    count = sum(len(copies) - 1 for copies in duplicates)
    examples = tuple(
        {**_shown(copies[0], split), "rows": [row.number for row in copies]} for copies in duplicates[:MAX_EXAMPLES]
    )
    message = f"{counted(count, 'row')} of the {split} split repeated exactly: kept once each."
    return [Finding("exact_duplicates", message, count, examples=examples)]


def _shown(row: LabelledRow, split: str) -> dict[str, Any]:
    text = row.text_a if row.text_b is None else f"{row.text_a} | {row.text_b}"
    return {"split": split, "row": row.number, "text": preview(text), "label": row.label}
