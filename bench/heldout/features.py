"""Texts as the bare encoder and the teacher see them, each read once and remembered in a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from bench.heldout.material import LoadedBase
from onboard.domain.dataset import Example
from onboard.errors import NotFoundError
from onboard.making.pretrain.teacher import Teacher
from onboard.model.encoding import pad, shares
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.model.readout_features import blocks_of, readout_features
from onboard.statistics.blocks import BLOCKS

Read = Callable[[Sequence[Example]], np.ndarray]  # n rows → (n, h)
_BATCH, _MOST_TOKENS = 64, 128  # of the teacher, as in `onboard.making.pretrain.teacher`


class Features:
    """The features of one reader, task by task.

    Args:
        read: reads rows that are not known yet; asked only for such.
        folder: where the features is kept, a file a task; another reader has another one.
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
        path = self._folder / f"{task}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        save_file({key: np.ascontiguousarray(vector) for key, vector in self._known.items()}, part)
        part.replace(path)


def _key(row: Example) -> str:
    return hashlib.sha256(f"{row.text_a}\n{row.text_b}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def of_encoder(engine: Engine) -> Read:
    """The input of a readout (`onboard.model.readout_features`): two blocks of a single text, four of a pair."""
    width = engine.backbone.config.d_model

    def read(rows: Sequence[Example]) -> np.ndarray:
        features = bare_features(engine, engine.encoder.encode([(row.text_a, row.text_b) for row in rows]))
        return features[:, : blocks_of(pairs=rows[0].text_b is not None) * width]

    return read


def encoder_features(place: LoadedBase, work: Path) -> Features:
    """Those of the base's encoder, remembered in a folder of the backbone below the work folder."""
    return Features(of_encoder(place.engine), work / f"{place.digest.removeprefix('sha256:')[:16]}-{BLOCKS}")


def installed_teacher(left_out: str) -> Teacher | None:
    """The sentence encoder that bases are made with; None, and a line about the omission, if it is missing."""
    try:
        return Teacher.load()
    except NotFoundError as error:
        print(f"left out: {left_out}, since the teacher is not installed: {error.remedy}")
        return None


def of_teacher(teacher: Teacher) -> Read:
    """Sentence vectors of the teacher; of a pair both, |u - v| and u∘v, as sentence encoders are used for pairs."""

    def read(rows: Sequence[Example]) -> np.ndarray:
        u = teacher.vectors([row.text_a for row in rows]).astype(np.float32)
        if rows[0].text_b is None:
            return u
        v = teacher.vectors([row.text_b or "" for row in rows]).astype(np.float32)
        return np.hstack([u, v, abs(u - v), u * v])

    return read


def of_teacher_layers(teacher: Teacher) -> Read:
    """The input of our readout if the teacher were our encoder: the same blocks; it reads a pair as "a [SEP] b"."""

    def read(rows: Sequence[Example]) -> np.ndarray:
        ids = _pieces(teacher, rows)
        blocks = blocks_of(pairs=rows[0].text_b is not None)
        features = np.zeros((len(rows), blocks * teacher.size), dtype=np.float32)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            features[batch] = _layers(teacher, [ids[row] for row in batch])[:, : features.shape[1]]
        return features

    return read


def _pieces(teacher: Teacher, rows: Sequence[Example]) -> list[list[int]]:
    """Token ids of texts and pairs, with a separator behind every text."""
    tokenizer = teacher.tokenizer
    end = tokenizer.sep_token_id

    def pieces_of(texts: list[str]) -> list[list[int]]:
        asked = tokenizer(texts, add_special_tokens=False, truncation=True, max_length=_MOST_TOKENS)
        return list(asked["input_ids"])

    first = pieces_of([row.text_a for row in rows])
    second = pieces_of([row.text_b or "" for row in rows])
    ids = []
    for row, left, right in zip(rows, first, second, strict=True):
        ends = 1 if row.text_b is None else 2
        of_left, of_right = shares(len(left), len(right), _MOST_TOKENS - 1 - ends)
        after = [] if row.text_b is None else [*right[:of_right], end]
        ids.append([tokenizer.cls_token_id, *left[:of_left], end, *after])
    return ids


@torch.inference_mode()
def _layers(teacher: Teacher, ids: Sequence[Sequence[int]]) -> np.ndarray:
    """(B, 6h) of a batch of token ids."""
    end = teacher.tokenizer.sep_token_id
    padded, mask = pad(ids, teacher.tokenizer.pad_token_id)
    seen: np.ndarray = readout_features(teacher.model, padded, mask, [end], end).numpy()
    return seen
