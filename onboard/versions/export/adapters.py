"""Use case: the adapters that the hypernetwork makes of a version, written out: plain weights for any T5 code."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from onboard.bases import Base
from onboard.data.regression import Buckets
from onboard.domain.dataset import label_text
from onboard.domain.safetensors_header import with_sorted_header
from onboard.domain.task import EmbeddingVersion, texts_taken
from onboard.hypernetworks.engines import engine_at
from onboard.hypernetworks.files import require_base
from onboard.model.adapter import LAYER_NORM_EPS
from onboard.model.engine import Engine
from onboard.model.hypernetwork import GeneratedAdapters
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.storage.embedding import embedding_facts, verified_embedding
from onboard.storage.readout import READOUT
from onboard.versions.fetch import Fetched, write_parts, write_whole

ADAPTERS: Final = "adapters.safetensors"
README: Final = "README.md"
_POSITIONS: Final = ("feed_forward", "self_attention")  # as the hypernetwork counts them
_TEXT: Final = """\
# Adapters of {version.reference}

Weights that stand after the sub-layers of one frozen T5 and make it answer this task.
They belong to the T5 of the base `{base.name}`, whose digest is `{version.backbone_digest}`.

`adapters.safetensors` holds float32 tensors named `STACK.block.LAYER.POSITION.PART`:

- STACK: `encoder` ({sizes[encoder_layers]} layers), `decoder` ({sizes[decoder_layers]} layers)
- POSITION: `feed_forward`, `self_attention` (the decoder's cross-attention has none)
- PART: `down` (b, h), `down_bias` (b), `up` (h, b), `up_bias`, `gamma`, `beta` (h each); \
h = {sizes[d_model]}, b = {sizes[bottleneck]}

The output y of the sub-layer, before its dropout and its skip connection, becomes

    y + layer_norm(up · gelu(down · y + down_bias) + up_bias) · gamma + beta

with the tanh form of GELU, and a layer norm over h (epsilon {epsilon:g}).

## Asking

The task takes {takes}.
Its tokens are those of the text and the end-of-sequence token, without a prefix; of a pair those of the first text, \
of `{encoder.pair_separator}`, of the second, and end-of-sequence.
More than {encoder.max_tokens} are cut, the longer text first.

The answer is the likeliest of these words, each of which ends in end-of-sequence. At every step only the tokens with \
which one of the words goes on compete (a softmax over these); where there is one, its probability is 1.
{number}
| answer | word |
|---|---|
{words}
{readout}"""
_NUMBER: Final = "The number is the mean of the answers, weighted by their probabilities.\n"
_READOUT_TEXT: Final = """
## The readout

`readout.safetensors` answers beside the adapters: softmax(scale · weights · x + bias), where x is the mean of the \
encoder's states over the tokens, without adapters. `share` of the probabilities is its own, the rest that of the words.
"""


def export_adapters(services: Services, reference: str, output: Path) -> Fetched:
    """Write `adapters.safetensors` and a README that says how they are used; the version's readout, where it has one.

    Args:
        services: where the version is.
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, made when missing.

    Raises:
        NotFoundError: no such version.
        DamagedError: stored bytes do not match their digest, or are gone.
        PinMismatchError: the base or the hypernetwork that the version is pinned to is not at hand.
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    base = require_base(services, version)
    z = verified_embedding(services.read(version.artifact), version)
    engine = engine_at(services, base, version.hypernetwork_version)
    with torch.inference_mode():
        adapters = engine.hypernetwork(torch.from_numpy(z)[None].to(engine.device))
    files = {ADAPTERS: _packed(adapters, version), README: _readme(version, base, engine).encode()}
    if version.readout is not None:
        files[READOUT] = services.read(version.readout)
    return Fetched(version, write_parts(output, {name: partial(_write, part) for name, part in files.items()}))


def _write(content: bytes, path: Path) -> None:
    write_whole(path, content)


def tensors_of(adapters: GeneratedAdapters) -> dict[str, np.ndarray]:
    """The adapters of one task by name: `encoder.block.0.feed_forward.down` and so on, float32."""
    tensors: dict[str, np.ndarray] = {}
    for stack, weights in (("encoder", adapters.encoder), ("decoder", adapters.decoder)):
        for place, adapter in enumerate(weights.places()):
            layer, position = divmod(place, len(_POSITIONS))
            for name, value in adapter._asdict().items():
                number = np.ascontiguousarray(value.float().cpu().numpy())
                tensors[f"{stack}.block.{layer}.{_POSITIONS[position]}.{name}"] = number
    return tensors


def _packed(adapters: GeneratedAdapters, version: EmbeddingVersion) -> bytes:
    from safetensors.numpy import save

    facts = embedding_facts(version, "")
    named = ("task", "version", "kind", "low", "high", "backbone", "base", "hypernetwork_version", "embedding", "words")
    metadata = {name: facts[name] if isinstance(facts[name], str) else json.dumps(facts[name]) for name in named}
    metadata["labels"] = json.dumps(facts["labels"], ensure_ascii=False)
    return with_sorted_header(save(tensors_of(adapters), metadata=metadata))


def _readme(version: EmbeddingVersion, base: Base, engine: Engine) -> str:
    return _TEXT.format(
        version=version,
        base=base,
        sizes=engine.hypernetwork.sizes,
        encoder=engine.encoder,
        epsilon=LAYER_NORM_EPS,
        takes="one text or two" if version.pairs is None else texts_taken(version.pairs).partition(":")[0],
        number="" if version.labels else _NUMBER,
        words="\n".join(_words(version)),
        readout="" if version.readout is None else _READOUT_TEXT,
    )


def _words(version: EmbeddingVersion) -> list[str]:
    if version.labels:
        answers = [" ".join(label_text(label).split()).replace("|", "&#124;") for label in version.labels]
    else:
        assert version.low is not None
        assert version.high is not None
        answers = [f"{value:.6g}" for value in Buckets(version.low, version.high).values]
    return [f"| {answer} | {word} |" for answer, word in zip(answers, version.words, strict=True)]
