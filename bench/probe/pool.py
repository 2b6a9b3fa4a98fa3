"""Thousands of embeddings to choose among, made of the few hundred that a base has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from bench.harness.as_if_new import source_candidates, without
from onboard.bases import Base
from onboard.probe.candidates import Candidate

NOISE: Final = 0.3  # of a perturbed embedding and its fingerprint; the numbers of both have a deviation of about 1


class Known(NamedTuple):
    """An embedding that a task could start from, and the fingerprint (t,) of its dataset."""

    candidate: Candidate
    fingerprint: np.ndarray


def pool(base: Base, task: str, count: int, seed: int = 0) -> list[Known]:
    """The base's own embeddings in a drawn order, then mixtures of two of them and perturbed ones in turn.

    Any beginning of it is the pool of a smaller registry.

    Args:
        base: with fingerprints.
        task: its source that is learned as if it were new; neither it nor the made tasks that bear its name are there.
        count: how many, at most as many as the base has and can be made of them.
        seed: of the draws.
    """
    real, rng = own(base, task), np.random.default_rng((seed, 71))
    embeddings = [real[index] for index in rng.permutation(len(real))[:count]]
    while len(embeddings) < count:
        made = _mixed(real, rng) if len(embeddings) % 2 else _perturbed(real, rng)
        named = replace(made.candidate, embedding=f"made-{len(embeddings)}@v1")
        embeddings.append(Known(named, made.fingerprint))
    return embeddings


def own(base: Base, task: str) -> list[Known]:
    """The embeddings of the base's sources and anchors, but for the task's own and those that bear its name."""
    assert base.fingerprints is not None
    of, rest = base.fingerprints.of, without(base, task)
    anchors = [Candidate(anchor.name, base.embeddings[anchor.name]) for anchor in rest.anchors]
    return [Known(candidate, of[candidate.embedding]) for candidate in (*source_candidates(rest), *anchors)]


def _mixed(real: Sequence[Known], rng: np.random.Generator) -> Known:
    """Somewhere between two; the words of the nearer one."""
    first, second = (real[index] for index in rng.choice(len(real), 2, replace=False))
    share = rng.uniform(0.5, 1.0)
    z = share * first.candidate.z + (1 - share) * second.candidate.z
    fingerprint = share * first.fingerprint + (1 - share) * second.fingerprint
    return Known(replace(first.candidate, z=z.astype(np.float32)), fingerprint.astype(np.float32))


def _perturbed(real: Sequence[Known], rng: np.random.Generator) -> Known:
    one = real[int(rng.integers(len(real)))]
    z, fingerprint = (numbers + rng.normal(0.0, NOISE, len(numbers)) for numbers in (one.candidate.z, one.fingerprint))
    return Known(replace(one.candidate, z=z.astype(np.float32)), fingerprint.astype(np.float32))
