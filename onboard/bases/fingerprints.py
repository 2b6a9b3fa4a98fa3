"""Fingerprints: numbers that describe how a base's backbone encodes a task.

If embeddings started from them, the base stores its own, and new tasks may start from theirs. On other bases they are
only used to find similar tasks, with projections that are the same for all bases, and without a scale.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from safetensors.numpy import load_file, save_file

from onboard.model.projections import Projections

FINGERPRINTS: Final = "fingerprints.safetensors"  # in a base's folder
_TINY = 1e-6


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprints of a base's tasks, on the scale of task embeddings.

    Args:
        projections: used for all of them, and for new tasks.
        mean, deviation: of the raw fingerprints that define the scale (t,).
        of: the scaled fingerprint of each task (t,) float32, by name.
    """

    projections: Projections
    mean: np.ndarray
    deviation: np.ndarray
    of: Mapping[str, np.ndarray]

    @classmethod
    def from_raw(cls, projections: Projections, raw: Mapping[str, np.ndarray]) -> Fingerprints:
        """Scale raw fingerprints so that every number has mean 0 and standard deviation 1 over the tasks."""
        stacked = np.stack(list(raw.values()))
        return cls(projections, stacked.mean(0), stacked.std(0) + _TINY, {}).again(raw)

    def again(self, raw: Mapping[str, np.ndarray]) -> Fingerprints:
        """Return other raw fingerprints on the same scale."""
        return replace(self, of={name: self.scaled(fingerprint) for name, fingerprint in raw.items()})

    def scaled(self, raw: np.ndarray) -> np.ndarray:
        """Return a fingerprint (t,) scaled to norm √t, the average norm of a draw from N(0, 1)."""
        standard = (raw - self.mean) / self.deviation
        scaled: np.ndarray = (standard * (len(raw) ** 0.5 / (np.linalg.norm(standard) + _TINY))).astype(np.float32)
        return scaled

    def nearest(self, scaled: np.ndarray, names: Iterable[str], count: int) -> list[str]:
        """Return the names of fingerprints with the largest cosine to this one, best first."""
        return sorted(names, key=lambda name: -float(self.of[name] @ scaled))[:count]

    def only(self, names: Iterable[str]) -> Fingerprints:
        """Return the same scale with fewer tasks.

        Raises:
            KeyError: a name does not exist.
        """
        return replace(self, of={name: self.of[name] for name in names})


def pack_fingerprint(fingerprint: np.ndarray) -> str:
    """Return numbers (t,) as Base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(fingerprint, dtype="<f4").tobytes()).decode()


def unpack_fingerprint(packed: str) -> np.ndarray:
    """Return numbers (t,) float32 from `pack_fingerprint`. Raises ValueError."""
    return np.frombuffer(base64.b64decode(packed, validate=True), dtype="<f4").astype(np.float32)


def write_fingerprints(fingerprints: Fingerprints, path: Path) -> None:
    """Write a safetensors file.

    Raises:
        OSError, safetensors.SafetensorError: it cannot be written.
    """
    scale = {"scale.mean": fingerprints.mean, "scale.deviation": fingerprints.deviation}
    projections = {f"projections.{name}": matrix for name, matrix in fingerprints.projections._asdict().items()}
    save_file(
        projections | scale | {f"task.{name}": fingerprint for name, fingerprint in fingerprints.of.items()}, path
    )


def read_fingerprints(path: Path) -> Fingerprints:
    """Read a file that `write_fingerprints` wrote.

    Raises:
        KeyError, safetensors.SafetensorError: it is another file, or damaged.
    """
    stored = load_file(path)
    projections = Projections(*(stored[f"projections.{name}"] for name in Projections._fields))
    of = {key.removeprefix("task."): tensor for key, tensor in stored.items() if key.startswith("task.")}
    return Fingerprints(projections, stored["scale.mean"], stored["scale.deviation"], of)
