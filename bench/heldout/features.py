"""Texts as the bare encoder and the teacher see them, each read once and remembered in a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from onboard.bases.pretrain.teacher import Teacher
from onboard.domain.dataset import Example
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.model.readout_features import blocks_of

Read = Callable[[Sequence[Example]], np.ndarray]  # n rows → (n, h)


class Features:
    """What one reader says of rows, task by task.

    Args:
        read: reads rows that are not known yet; asked only for such.
        folder: where what was read is kept, a file a task; another reader has another one.
    """

    def __init__(self, read: Read, folder: Path) -> None:
        self._read, self._folder = read, folder
        self._task, self._known = "", dict[str, np.ndarray]()

    def of(self, task: str, rows: Sequence[Example]) -> np.ndarray:
        """Features (n, h) float32 of a task's rows."""
        if task != self._task:
            self._task, self._known = task, self._kept(task)
        keys = [_key(row) for row in rows]
        unread = {key: row for key, row in zip(keys, rows, strict=True) if key not in self._known}
        if unread:
            self._known |= dict(zip(unread, self._read(list(unread.values())), strict=True))
            self._keep(task)
        return np.stack([self._known[key] for key in keys]).astype(np.float32)

    def _kept(self, task: str) -> dict[str, np.ndarray]:
        path = self._folder / f"{task}.safetensors"
        return load_file(path) if path.is_file() else {}

    def _keep(self, task: str) -> None:
        """Write all at once, so that of two processes one wins and neither reads half a file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{task}.safetensors"
        part = path.with_suffix(f".{os.getpid()}")
        save_file({key: np.ascontiguousarray(vector) for key, vector in self._known.items()}, part)
        part.replace(path)


def _key(row: Example) -> str:
    return hashlib.sha256(f"{row.text_a}\n{row.text_b}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def of_encoder(engine: Engine) -> Read:
    """What a readout sees (`onboard.model.readout_features`): two blocks of a single text, four of a pair."""
    width = engine.backbone.config.d_model

    def read(rows: Sequence[Example]) -> np.ndarray:
        features = bare_features(engine, engine.encoder.encode([(row.text_a, row.text_b) for row in rows]))
        return features[:, : blocks_of(pairs=rows[0].text_b is not None) * width]

    return read


def of_teacher(teacher: Teacher) -> Read:
    """Sentence vectors of the teacher; of a pair both, |u - v| and u∘v, as sentence encoders are used for pairs."""

    def read(rows: Sequence[Example]) -> np.ndarray:
        u = teacher.vectors([row.text_a for row in rows]).astype(np.float32)
        if rows[0].text_b is None:
            return u
        v = teacher.vectors([row.text_b or "" for row in rows]).astype(np.float32)
        return np.hstack([u, v, abs(u - v), u * v])

    return read
