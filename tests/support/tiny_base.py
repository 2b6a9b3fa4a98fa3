"""The tiny base of the measurements, and a copy of it with fingerprints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from bench.harness.tiny_base import SIZE, WORDS, make_tiny_base
from onboard.bases import Base, find_base
from onboard.bases.fingerprints import FINGERPRINTS, Fingerprints, write_fingerprints
from onboard.model.projections import Projections

__all__ = ["SIZE", "WORDS", "make_tiny_base", "with_fingerprints"]


def with_fingerprints(base: Base, folder: Path, anchors: int = 20) -> Base:
    """A copy with the anchors `made-0`, `made-1` … besides, and a made-up fingerprint for each of its tasks."""
    shutil.copytree(base.folder, folder)
    rng, document = np.random.default_rng(5), dict(base.document)
    made = [f"made-{number}" for number in range(anchors)]
    document["anchors"] = document["anchors"] | dict.fromkeys(made, document["anchors"]["topics-2"])
    raw = {name: rng.standard_normal(SIZE).astype(np.float32) for name in (*document["sources"], *document["anchors"])}
    width = json.loads((folder / "backbone" / "config.json").read_text(encoding="utf-8"))["d_model"]
    projections = Projections.drawn(width, SIZE, 5)
    write_fingerprints(Fingerprints.from_raw(projections, raw), folder / FINGERPRINTS)
    table = {name: rng.standard_normal(SIZE).astype(np.float32) for name in made}
    save_file(base.embeddings | table, folder / "embeddings.safetensors")
    (folder / "base.json").write_text(json.dumps(document), encoding="utf-8")
    return find_base(str(folder))
