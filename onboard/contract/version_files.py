"""The folder of a fetched version: file names, and writing the files, each completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onboard.contract.card import render_card
from onboard.domain.private import open_new, part_beside
from onboard.domain.task import EmbeddingVersion
from onboard.errors import NotAllowedError, StorageError

EMBEDDING: Final = "embedding.safetensors"
WEIGHTS: Final = "weights.safetensors"  # of a version without an embedding
READOUT: Final = "readout.safetensors"
BASE: Final = "base"  # what a bundle calls the folder of the base
HYPERNETWORK: Final = "hypernetwork.safetensors"  # and a hypernetwork that the base does not bring
_REMEDY: Final = "free some space, or choose another --output"


def file_name(version: EmbeddingVersion) -> str:
    """The file name of a fetched version. Raises InputError: its method is unknown to this release."""
    return EMBEDDING if version.content == "embedding" else WEIGHTS


Part = bytes | Callable[[Path], object]
"""The bytes of a file, or what writes a file or a folder to a path, whole or not at all."""


def write_files(
    version: EmbeddingVersion, content: bytes, output: Path, parts: Mapping[str, Part] | None = None
) -> tuple[Path, ...]:
    """Write a fetched version: `content` as its file, its card, and further parts of a bundle.

    Args:
        parts: further files and folders by name.

    Raises:
        NotAllowedError, StorageError: the folder cannot be written.
    """
    own: dict[str, Part] = {file_name(version): content, "card.md": render_card(version).encode()}
    # further parts first: if one of them is refused or fails, the existing files stay unchanged
    written = write_parts(output, {**(parts or {}), **own})
    return *written[-len(own) :], *written[: -len(own)]


def write_parts(output: Path, parts: Mapping[str, Part]) -> tuple[Path, ...]:
    """Write files into a folder, made when missing, one after the other; returns their paths.

    Raises:
        NotAllowedError, StorageError: the folder cannot be written.
    """
    made_folder(output)
    with output_in_our_words(output, _REMEDY):
        for name, part in parts.items():
            if isinstance(part, bytes):
                write_whole(output / name, part)
            else:
                part(output / name)
    return tuple(output / name for name in parts)


def made_folder(output: Path) -> None:
    """Make a folder for files. Raises NotAllowedError, StorageError."""
    with output_in_our_words(output, _REMEDY):
        output.mkdir(parents=True, exist_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all. Raises OSError."""
    part = part_beside(path)
    try:
        with open_new(part) as stream:
            stream.write(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def output_in_our_words(output: Path | str, remedy: str) -> Iterator[None]:
    """Raise NotAllowedError or StorageError if a folder that the user named cannot be written.

    Args:
        output: the folder given as --output.
        remedy: where it may be written to, but cannot: the disk is full.
    """
    try:
        yield
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise NotAllowedError("output-forbidden", output=output, reason=error.strerror) from error
    except OSError as error:
        raise StorageError(
            "output-not-writable", output=output, reason=error.strerror or error, remedy=remedy
        ) from error
