"""Import bases from checkpoints of the authors' repository (rabeehk/hyperformer), and export them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from onboard.bases import FORMAT, LESSONS, Base, SourceTask, find_base, folder_digest
from onboard.bases.documents import write_documents, write_json
from onboard.bases.fingerprints import FINGERPRINTS, Fingerprints, read_fingerprints, write_fingerprints
from onboard.bases.lessons import pack_lessons, read_lessons
from onboard.bases.load import load_engine
from onboard.bases.placing import whole_folder
from onboard.data.hub_deadline import ANSWER_SECONDS, unreachable, within_deadline
from onboard.domain.names import require_name
from onboard.errors import ConflictError, DamagedError, InputError, NotAllowedError, StorageError, UnavailableError
from onboard.making.label_words import label_words, read_label_words
from onboard.model.encoding import TextEncoder
from onboard.model.exporters import official_config, official_tensors
from onboard.model.official import AuthorsCheckpoint, read_checkpoint
from onboard.model.scoring import LabelTrie
from onboard.model.tokenizer import load_tokenizer
from onboard.model.weights import save_hypernetwork, write_tensors

LABELS_FILE = "labels.json"
_OWN_SECTION = "onboard"  # of an exported config.json: facts that the authors' format lacks
_OWN_TYPES = {"pair_separator": str, "max_tokens": int, "licence": str, "anchors": list}
_ANY_BACKBONE = "that of the checkpoint"  # the backbone's digest differs in the authors' format
_PAIR_SEPARATOR = "|"
_MAX_TOKENS = 128  # the authors' max_source_length
_LICENCE = "Not stated: the weights were imported, and whoever trained them has to say.\n"


def import_base(folder: Path, tokenizer: str, labels: Path, name: str, output: Path) -> Base:
    """Import a checkpoint of HyperFormer or HyperFormer++ in the authors' format as a base.

    Args:
        folder: config.json, and model.safetensors or pytorch_model.bin.
        tokenizer: folder or hub id.
        labels: JSON file with the tasks' label words, see `onboard.making.label_words`.
        output: folder of the base; must be empty or missing.

    Returns:
        The base. `document["imported"]["notes"]` lists what could not be imported.

    Raises:
        InputError: an invalid name, another kind of checkpoint, or unsuitable label words or tokenizer.
        NotFoundError: a file is missing.
        DamagedError: a file cannot be read.
        UnavailableError: the hub cannot be reached or does not have the tokenizer.
        ConflictError: the output folder is not empty.
        NotAllowedError, StorageError: it cannot be written.
    """
    require_name(name, "base name")
    require_empty(output)
    checkpoint = read_checkpoint(folder)
    for task in checkpoint.embeddings:
        _require_task_name(task)
    tasks = read_label_words(labels, list(checkpoint.embeddings))
    ours = _own_section(checkpoint.described)
    separator, limit = ours.get("pair_separator", _PAIR_SEPARATOR), ours.get("max_tokens", _MAX_TOKENS)
    encoder = TextEncoder(_load_tokenizer(tokenizer), separator, limit)
    _require_fit(encoder, checkpoint, tasks.values())
    document = {"format": FORMAT, "name": name, **_described(folder, checkpoint, encoder, tasks)}
    fingerprints = _fingerprints(folder, tasks)
    with _new_folder(output) as part:
        _write_base(part, checkpoint, encoder.tokenizer, document)
        if fingerprints is not None:
            write_fingerprints(fingerprints, part / FINGERPRINTS)
        _take_lessons(folder, part, tasks)
    return find_base(str(output.resolve()))


def export_base(base: Base, output: Path) -> list[Path]:
    """Export a base's first hypernetwork, its backbone and all its embeddings in the authors' format.

    The result contains model.safetensors, config.json, labels.json, the tokenizer and fingerprints. From it,
    `import_base` restores the same tensors bit for bit. The format has no place for metrics, the recipe and hashes of
    training rows.

    Args:
        base: any base.
        output: folder; must be empty or missing.

    Returns:
        The files.

    Raises:
        ConflictError: the output folder is not empty.
        NotAllowedError, StorageError: it cannot be written.
    """
    require_empty(output)
    engine = load_engine(base, "cpu")
    tasks = [*base.sources, *base.anchors]
    embeddings = {task.name: torch.from_numpy(base.embeddings[task.name]) for task in tasks}
    config = official_config(
        engine.backbone, engine.hypernetwork, list(embeddings), base.document["reduction_factor"]
    ) | {
        _OWN_SECTION: {
            "pair_separator": base.document["pair_separator"],
            "max_tokens": base.document["max_tokens"],
            "licence": base.document["licence"],
            "anchors": [anchor.name for anchor in base.anchors],
        }
    }
    with _new_folder(output) as part:
        tensors = official_tensors(engine.backbone, engine.hypernetwork, embeddings)
        write_tensors(tensors, part / "model.safetensors", {"format": "pt"})
        engine.encoder.tokenizer.save_pretrained(part)
        write_json(part / "config.json", config)
        write_json(part / LABELS_FILE, label_words(tasks))
        _write_beside(base, part)
    return sorted(path for path in output.rglob("*") if path.is_file())


def require_empty(output: Path) -> None:
    """Raise ConflictError if the folder is not empty, NotAllowedError if it is not a folder."""
    try:
        if output.exists() and any(output.iterdir()):
            raise ConflictError("export-folder-not-empty", folder=str(output))
    except (PermissionError, NotADirectoryError) as error:
        raise _not_writable(output, error) from error


def _require_task_name(name: str) -> None:
    try:
        require_name(name)
    except InputError as error:
        raise InputError("checkpoint-task-name-invalid", name=name, advice=error.remedy) from error


def _own_section(described: Mapping[str, Any]) -> dict[str, Any]:
    section = described.get(_OWN_SECTION, {})
    fine = isinstance(section, dict) and all(
        isinstance(section.get(key, kind()), kind) for key, kind in _OWN_TYPES.items()
    )
    if not fine:
        raise DamagedError("config-section-unknown", own_section=_OWN_SECTION)
    return dict(section)


def _fingerprints(folder: Path, tasks: Iterable[str]) -> Fingerprints | None:
    """Return the fingerprints that an export wrote next to the checkpoint; None if there are none."""
    path = folder / FINGERPRINTS
    if not path.is_file():
        return None
    try:
        return read_fingerprints(path).only(tasks)
    except (SafetensorError, KeyError) as error:
        raise DamagedError("checkpoint-fingerprints-unreadable", path=path, reason=error) from error


def _write_beside(base: Base, part: Path) -> None:
    """Write fingerprints and lessons, if any, for which the authors' format has no place."""
    if base.fingerprints is not None:
        write_fingerprints(base.fingerprints, part / FINGERPRINTS)
    if base.lessons:
        (part / LESSONS).write_bytes(pack_lessons(base.lessons, _ANY_BACKBONE))


def _take_lessons(folder: Path, part: Path, tasks: Iterable[str]) -> None:
    """Copy the lessons of an export and pin them to the imported backbone."""
    if (folder / LESSONS).is_file():
        exported = read_lessons(folder / LESSONS, _ANY_BACKBONE)
        kept_lessons = {task: exported[task] for task in tasks if task in exported}
        (part / LESSONS).write_bytes(pack_lessons(kept_lessons, folder_digest(part / "backbone")))


def _load_tokenizer(source: str) -> Any:
    """Load a tokenizer from a folder, the download cache, or the hub, with a short timeout and no retry."""
    from huggingface_hub import HfApi
    from transformers import AutoTokenizer

    folder = Path(source).expanduser()
    if folder.is_dir():
        return load_tokenizer(folder, source)
    failures: tuple[type[Exception], ...] = (*unreachable(), ValueError, ImportError)
    try:
        return AutoTokenizer.from_pretrained(source, local_files_only=True)
    except (OSError, ValueError, ImportError):
        pass  # not downloaded yet
    try:
        within_deadline(lambda: HfApi().model_info(source, timeout=ANSWER_SECONDS))
        return AutoTokenizer.from_pretrained(source)
    except failures as error:
        raise UnavailableError("hub-tokenizer-unavailable", source=source, reason=_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _require_fit(encoder: TextEncoder, checkpoint: AuthorsCheckpoint, tasks: Iterable[SourceTask]) -> None:
    """Raise InputError unless the backbone covers the tokenizer and every task's words are distinguishable."""
    tokens, size = len(encoder.tokenizer), checkpoint.backbone.config.vocab_size
    if tokens > size:
        raise InputError("tokenizer-too-large", tokens=tokens, known=size)
    for task in tasks:
        try:
            ids = [encoder.label_ids(word) for word in task.words]
            LabelTrie.build(ids)
        except InputError as error:
            raise InputError(
                "checkpoint-label-words-unusable", task=task.name, reason=error.message, remedy=error.remedy
            ) from error
        for word, tokens_of_word in zip(task.words, ids, strict=True):
            if encoder.tokenizer.unk_token_id in tokens_of_word:
                raise InputError("label-word-unknown-to-tokenizer", word=word, task=task.name)


def _described(
    folder: Path, checkpoint: AuthorsCheckpoint, encoder: TextEncoder, tasks: Mapping[str, SourceTask]
) -> dict[str, Any]:
    """Return the contents of base.json that a checkpoint determines."""
    sizes, ours = checkpoint.hypernetwork.sizes, _own_section(checkpoint.described)
    anchors = ours.get("anchors", [])
    entries = {name: {**task.to_json(), "metrics": {}} for name, task in tasks.items()}
    return {
        "licence": ours.get("licence", _LICENCE),
        "method": checkpoint.hypernetwork.METHOD,
        "pair_separator": encoder.pair_separator,
        "max_tokens": encoder.max_tokens,
        "task_embedding_size": sizes["task_embedding_size"],
        "reduction_factor": sizes["d_model"] // sizes["bottleneck"],
        "imported": {"from": folder.resolve().name, "notes": list(checkpoint.notes)},
        "sources": {name: entry for name, entry in entries.items() if name not in anchors},
        "anchors": {name: entry for name, entry in entries.items() if name in anchors},
    }


def _write_base(folder: Path, checkpoint: AuthorsCheckpoint, tokenizer: Any, document: Mapping[str, Any]) -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()  # a progress bar for one file is not useful
    checkpoint.backbone.save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")
    save_hypernetwork(checkpoint.hypernetwork, folder / "hypernetwork.safetensors")
    write_tensors(checkpoint.embeddings, folder / "embeddings.safetensors", {})
    unknown: dict[str, Tensor] = {name: torch.empty(0, dtype=torch.int64) for name in document["sources"]}
    write_tensors(unknown, folder / "trained_rows.safetensors", {})
    made = (
        f"Imported from the checkpoint `{document['imported']['from']}` of the method {document['method']}: "
        "a frozen T5 with adapters"
    )
    unknown_here = "Which rows trained it is not known, and it was not measured here."
    rows = [f"| {name} | {', '.join(facts['words'])} |" for name, facts in document["sources"].items()]
    table = ["| source | label words |", "|---|---|", *rows]
    write_documents(folder, document, made, table, [*document["imported"]["notes"], unknown_here])


@contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """Yield a folder that becomes `output` on success and is deleted on failure."""
    try:
        with whole_folder(output.expanduser().resolve()) as part:
            part.mkdir(parents=True)
            yield part
            for path in part.rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)  # safetensors creates files that only the owner can read
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise _not_writable(output, error) from error
    except (OSError, SafetensorError) as error:
        raise StorageError("export-not-writable", output=output, reason=error) from error


def _not_writable(output: Path, error: OSError) -> NotAllowedError:
    return NotAllowedError("export-folder-forbidden", output=output, reason=error.strerror)
