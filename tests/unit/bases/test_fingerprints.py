"""Fingerprints of a base: their scale, the nearest ones, their file, and the candidates that they choose."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from onboard.bases import Base
from onboard.bases.fingerprints import Fingerprints, read_fingerprints, write_fingerprints
from onboard.model.projections import Projections
from onboard.pipeline.candidates import shipped_candidates
from onboard.probe.candidates import Candidate

SIZE = 16
PROJECTIONS = Projections.drawn(6, SIZE, 0)


@pytest.fixture
def raw() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(3.0, 5.0, SIZE).astype(np.float32) for name in ("one", "two", "three", "four")}


def test_scaled_fingerprints_are_as_long_as_random_embeddings_and_lie_around_the_mean(
    raw: dict[str, np.ndarray],
) -> None:
    fingerprints = Fingerprints.from_raw(PROJECTIONS, raw)
    for name, fingerprint in raw.items():
        assert np.linalg.norm(fingerprints.of[name]) == pytest.approx(SIZE**0.5, rel=1e-5)
        assert fingerprints.of[name].dtype == np.float32
        np.testing.assert_array_equal(fingerprints.scaled(fingerprint), fingerprints.of[name])
    middle = np.mean(list(raw.values()), axis=0)
    above, below = (fingerprints.scaled(middle + sign * fingerprints.deviation) for sign in (1, -1))
    np.testing.assert_allclose(above, 1.0, rtol=1e-4)
    np.testing.assert_allclose(below, -1.0, rtol=1e-4)


def test_other_fingerprints_are_put_on_the_same_scale(raw: dict[str, np.ndarray]) -> None:
    first = Fingerprints.from_raw(PROJECTIONS, raw)
    later = first.again({"one": raw["two"] + 1, "five": raw["three"]})
    assert (later.projections, later.mean.tobytes()) == (first.projections, first.mean.tobytes())
    assert later.deviation.tobytes() == first.deviation.tobytes()
    assert set(later.of) == {"one", "five"}
    np.testing.assert_array_equal(later.of["one"], first.scaled(raw["two"] + 1))
    np.testing.assert_array_equal(later.of["five"], first.of["three"])


def test_projections_are_normal_fit_any_size_and_are_the_same_for_a_seed() -> None:
    drawn = Projections.drawn(40, 65, 3)
    assert [matrix.shape for matrix in drawn] == [(32, 40), (32, 40), (33, 80)]
    assert {matrix.dtype for matrix in drawn} == {np.dtype(np.float32)}
    assert [float(matrix.std()) for matrix in drawn] == pytest.approx([1.0] * 3, abs=0.05)
    again, other = Projections.drawn(40, 65, 3), Projections.drawn(40, 65, 4)
    assert all(np.array_equal(one, two) for one, two in zip(drawn, again, strict=True))
    assert not any(np.array_equal(one, two) for one, two in zip(drawn, other, strict=True))


def test_the_fixed_projections_are_signs_and_the_same_for_ever() -> None:
    fixed = Projections.fixed(40)
    assert [matrix.shape for matrix in fixed] == [(32, 40), (32, 40), (32, 80)]
    assert {matrix.dtype for matrix in fixed} == {np.dtype(np.float32)}
    assert set(np.unique(np.concatenate([matrix.ravel() for matrix in fixed])).tolist()) == {-1.0, 1.0}
    assert all(abs(float(matrix.mean())) < 0.1 for matrix in fixed)
    signs = b"".join((matrix > 0).tobytes() for matrix in fixed)
    assert (
        hashlib.sha256(signs).hexdigest() == "a21c52f5001185918319b203304cd466067225d35252c79a22608a0a7c5196ed"
    )  # versions keep what was taken on them


def test_the_nearest_come_first_and_only_those_that_were_asked_for(raw: dict[str, np.ndarray]) -> None:
    fingerprints = Fingerprints.from_raw(PROJECTIONS, raw)
    nearly = fingerprints.scaled(raw["two"] + 0.1)
    cosines = {name: float(fingerprint @ nearly) for name, fingerprint in fingerprints.of.items()}
    assert fingerprints.nearest(nearly, raw, 9) == sorted(raw, key=lambda name: -cosines[name])
    assert fingerprints.nearest(nearly, raw, 1) == ["two"]
    assert fingerprints.nearest(nearly, ["four"], 3) == ["four"]


def test_the_file_gives_back_what_was_written(raw: dict[str, np.ndarray], tmp_path: Path) -> None:
    fingerprints = Fingerprints.from_raw(PROJECTIONS, raw)
    write_fingerprints(fingerprints, tmp_path / "file")
    again = read_fingerprints(tmp_path / "file")
    assert set(again.of) == set(raw)
    assert all(again.of[name].tobytes() == fingerprints.of[name].tobytes() for name in raw)
    for read, written in zip(again.projections, PROJECTIONS, strict=True):
        assert (read.dtype, read.shape, read.tobytes()) == (written.dtype, written.shape, written.tobytes())
    assert (again.mean.tobytes(), again.deviation.tobytes()) == (
        fingerprints.mean.tobytes(), fingerprints.deviation.tobytes(),
    )  # fmt: skip
    assert again.scaled(raw["one"]).tobytes() == fingerprints.of["one"].tobytes()


def test_a_base_without_the_file_has_none(tiny_base: Base, fingerprinted_base: Base) -> None:
    assert tiny_base.fingerprints is None
    assert fingerprinted_base.fingerprints is not None


def names(candidates: list[Candidate]) -> list[str]:
    return [candidate.embedding for candidate in candidates]


def test_the_twelve_nearest_anchors_are_candidates_and_the_fingerprint_itself(fingerprinted_base: Base) -> None:
    known = fingerprinted_base.fingerprints
    assert known is not None
    candidates = shipped_candidates(fingerprinted_base, [], 0, known.of["made-7"])
    anchors = {anchor.name for anchor in fingerprinted_base.anchors}
    assert names(candidates)[0] == "made-7"
    assert names(candidates)[12:] == ["fingerprint", "random", "mean"]
    left = anchors - set(names(candidates[:12]))
    assert len(left) == len(anchors) - 12
    nearness = {name: float(known.of[name] @ known.of["made-7"]) for name in anchors}
    assert max(nearness[name] for name in left) < min(nearness[name] for name in names(candidates[:12]))
    assert candidates[12].z is known.of["made-7"]


def test_without_a_fingerprint_all_anchors_are_candidates(fingerprinted_base: Base) -> None:
    candidates = shipped_candidates(fingerprinted_base, [], 0, None)
    assert names(candidates) == [*(anchor.name for anchor in fingerprinted_base.anchors), "random", "mean"]


def test_on_a_base_without_fingerprints_one_chooses_no_anchors_and_is_no_embedding_to_start_from(
    tiny_base: Base,
) -> None:
    candidates = shipped_candidates(tiny_base, [], 0, np.ones(64, dtype=np.float32))
    assert names(candidates) == ["topics-2", "random", "mean"]


def test_the_mean_is_of_all_tasks_and_anchors_near_or_far(fingerprinted_base: Base) -> None:
    learned = [np.full(SIZE, 9.0, dtype=np.float32)]
    anchors = [fingerprinted_base.embeddings[anchor.name] for anchor in fingerprinted_base.anchors]
    for fingerprint in (None, np.ones(SIZE, dtype=np.float32)):
        mean = shipped_candidates(fingerprinted_base, learned, 0, fingerprint)[-1]
        np.testing.assert_allclose(mean.z, np.mean([*learned, *anchors], axis=0), rtol=1e-5)


def test_an_anchor_brings_no_label_words_along(tiny_base: Base) -> None:
    assert [candidate.words for candidate in shipped_candidates(tiny_base, [], 0, None)] == [(), (), ()]
