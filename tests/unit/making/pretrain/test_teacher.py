"""The teacher's vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.refusals import refused
from support.tiny_teacher import make_teacher

from onboard.making.pretrain.teacher import Teacher


def test_vectors_are_unit_means_of_the_states_in_the_order_of_the_texts(words: list[str], texts: list[str]) -> None:
    teacher, counts = make_teacher(words), []
    vectors = teacher.vectors(texts, counts.append)
    assert vectors.shape == (len(texts), teacher.size)
    assert vectors.dtype == np.float16
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1.0, atol=2e-3)
    assert counts == [64, 128, 192, 256, 320, 384, 400]
    for place in (0, 17, 399):
        with torch.inference_mode():
            state = teacher.model(**teacher.tokenizer(texts[place], return_tensors="pt")).last_hidden_state[0].mean(0)
        np.testing.assert_allclose(vectors[place], state / state.norm(), atol=0.03)  # computed in bfloat16


def test_without_its_package_the_command_that_brings_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.making.pretrain.teacher.find_spec", lambda name: None)
    with refused("teacher-not-installed") as caught:
        Teacher.load()
    assert "onboard[mini]" in caught.value.remedy
