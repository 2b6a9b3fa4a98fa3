"""Names of renamed labels in an alias, so that its users still get the previous names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onboard.domain.dataset import Label, label_key, label_text
from onboard.domain.names import Reference
from onboard.errors import ConflictError, InputError
from onboard.registry.versions import VersionRepository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from onboard.domain.task import AliasNames, EmbeddingVersion

_MOST_STEPS = 1_000  # back from a version


def names_as_before(
    session: Session, version: EmbeddingVersion, present: EmbeddingVersion | None, names: AliasNames | None
) -> AliasNames | None:
    """Return the names of a version's labels for an alias that keeps its names.

    Args:
        version: the version that the alias will name.
        present: the version that it names now; None for a new alias.
        names: its current names of that version's labels.

    Returns:
        Pairs of a label and its name; None if nothing differs.

    Raises:
        ConflictError: the version does not derive from the current one, or labels of its answers were merged.
    """
    if present is None:
        raise ConflictError("as-before-new-alias", task=version.task, version=version.reference)
    name_of: dict[str, tuple[Label, Label]] = {label_key(label): (label, label) for label in present.labels}
    name_of |= {label_key(label): (label, name) for label, name in names or ()}
    for change in _changes(session, version, present):
        if change["action"] == "rename":
            (old,), new = change["labels"], change["to"]
            _, name = name_of.pop(label_key(old), (old, old))
            name_of[label_key(new)] = new, name
        elif change["action"] == "merge":
            _require_one_name(change, name_of)
    label_keys_now = {label_key(label) for label in version.labels}
    pairs = [
        [label, name] for key, (label, name) in name_of.items() if key in label_keys_now and label_key(name) != key
    ]
    _require_distinct(version, pairs)
    return pairs or None


def _changes(session: Session, version: EmbeddingVersion, present: EmbeddingVersion) -> list[Any]:
    """Return the changes of labels from the current version to the other one, in order."""
    changes: list[Any] = []
    step: EmbeddingVersion | None = version
    for _ in range(_MOST_STEPS):
        if step is None:
            break
        if step.version == present.version:
            return changes[::-1]
        if step.change is not None:
            changes.append(step.change)
        step = _before(session, step)
    raise ConflictError(
        "as-before-not-made-of", task=version.task, version=version.reference, present=present.reference
    )


def _before(session: Session, version: EmbeddingVersion) -> EmbeddingVersion | None:
    """Return the version from which another one was made by a change, a carry or a job's first version."""
    versions = VersionRepository(session)
    if version.kind in ("carried", "relabeled"):
        try:
            parent = Reference.parse(version.parent)
        except InputError:
            return None
        return None if parent.version is None else versions.living(version.task, parent.version)
    if version.change is None:
        return None
    if version.change["version"] is not None:
        return versions.living(version.task, version.change["version"])
    job = version.change["job"]
    return None if job is None else versions.of_job(job)


def _require_one_name(change: Any, called: dict[str, tuple[Label, Label]]) -> None:
    """A merged label keeps its previous name only if it is one of those that were merged."""
    to, gone = change["to"], change["labels"]
    target = called.get(label_key(to))
    if target is None:
        merged = " and ".join(repr(label_text(label)) for label in gone)
        raise ConflictError("as-before-merged", labels=list(gone), merged=merged, shown=label_text(to))
    for label in gone:
        called.pop(label_key(label), None)
    called[label_key(to)] = target


def _require_distinct(version: EmbeddingVersion, pairs: list[list[Label]]) -> None:
    """Raise ConflictError if two labels would have the same name."""
    by_key = {label_key(label): name for label, name in pairs}
    names = [label_key(by_key.get(label_key(label), label)) for label in version.labels]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ConflictError("as-before-same-name", task=version.task, version=version.reference, shown=twice[0])
