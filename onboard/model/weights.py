"""Hypernetworks as reproducible safetensors files, and digests of weights."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from onboard.domain.private import open_new, part_beside
from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, InputError, NotFoundError, StorageError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods import FIRST_METHOD, METHODS, new_hypernetwork
from onboard.model.quantised import dequantise, quantise

HYPERNETWORK_FORMAT = "onboard-hypernetwork-1"


def save_hypernetwork(
    hypernetwork: Hypernetwork,
    path: str | Path,
    metadata: Mapping[str, str] | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write the hypernetwork's tensors, with its method and sizes as metadata.

    Args:
        metadata: additional facts, strings; `format`, `method` and `sizes` are added.
        dtype: of the stored tensors. float16 halves the file, for weights that were rounded to it; int8 applies
            `quantise`, for weights rounded with `round_to_stored`.

    Raises:
        InputError: a weight is NaN, infinite or too large for int8.
        StorageError: the file cannot be written.
    """
    state = hypernetwork.state_dict()
    tensors = quantise(state) if dtype == torch.int8 else {name: value.to(dtype) for name, value in state.items()}
    described = {"method": hypernetwork.METHOD, "sizes": json.dumps(hypernetwork.sizes, sort_keys=True)}
    write_tensors(tensors, path, {**(metadata or {}), "format": HYPERNETWORK_FORMAT, **described})


def load_hypernetwork(path: str | Path) -> Hypernetwork:
    """Return the hypernetwork of a file, in float32 on the CPU.

    Raises:
        NotFoundError: the file does not exist.
        DamagedError: it cannot be read, or its tensors do not match its sizes.
        InputError: the file contains something else, or a method that this release does not support.
    """
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != HYPERNETWORK_FORMAT:
        raise InputError("not-a-hypernetwork", path=path)
    method = metadata.get("method", FIRST_METHOD)
    if method not in METHODS:
        raise InputError("hypernetwork-method-unknown", path=path, method=method)
    state = dequantise(tensors, path)  # copies, because the file may change later
    try:
        with torch.device("meta"):  # no memory, time or random numbers for weights that are replaced at once
            hypernetwork = new_hypernetwork(method, json.loads(metadata["sizes"]))
        hypernetwork.load_state_dict(state, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedError("hypernetwork-file-damaged", path=path, reason=error) from error
    return hypernetwork


def write_tensors(tensors: Mapping[str, Tensor], path: str | Path, metadata: Mapping[str, str]) -> None:
    """Write a safetensors file atomically. Its bytes depend on the content only, so equal content has an equal digest.

    The tensors are not copied in memory.

    Raises:
        StorageError: the file cannot be written; the previous file is intact.
    """
    path = Path(path)
    unsorted, part = part_beside(path), part_beside(path)
    contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    try:
        save_file(contiguous, unsorted, dict(metadata))
        _sort_header(unsorted, part)
        part.replace(path)
    except (SafetensorError, OSError) as error:
        raise StorageError("weights-not-writable", path=path, reason=error) from error
    finally:
        unsorted.unlink(missing_ok=True)
        part.unlink(missing_ok=True)


def _sort_header(source: Path, target: Path) -> None:
    with source.open("rb") as reader, open_new(target) as writer:
        length = reader.read(8)
        writer.write(with_sorted_header(length + reader.read(struct.unpack("<Q", length)[0])))
        shutil.copyfileobj(reader, writer)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return all tensors, on the CPU, and the metadata of a safetensors file.

    Raises:
        NotFoundError: the file does not exist.
        DamagedError: it cannot be read as safetensors.
    """
    if not Path(path).is_file():
        raise NotFoundError("weights-file-missing", path=path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118 (safe_open is no mapping)
    except SafetensorError as error:
        raise DamagedError("weights-file-unreadable", path=path, reason=error) from error


def digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of names, dtypes, shapes and bytes of tensors, sorted by name."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        total.update(value.view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def hypernetwork_digest(hypernetwork: Hypernetwork) -> str:
    """Return the identity of a hypernetwork's weights, independent of its file."""
    return digest(hypernetwork.state_dict())
