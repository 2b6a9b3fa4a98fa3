"""Use case: export a version as one ONNX model from token ids to log-probabilities of the labels."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from onboard.bases import Base
from onboard.contract.version_files import write_parts, write_whole
from onboard.domain.private import open_new, part_beside
from onboard.domain.task import EmbeddingVersion
from onboard.domain.temporary import temporary_folder
from onboard.errors import DamagedError, InputError
from onboard.hypernetworks.engines import engine_at
from onboard.hypernetworks.files import require_base
from onboard.model.encoding import pad
from onboard.model.engine import Engine
from onboard.model.readout import probabilities_of
from onboard.model.readout_features import readout_features
from onboard.model.scoring import PackedTries, label_log_probabilities
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.statistics.blocks import BLOCKS
from onboard.statistics.readout import Readout
from onboard.statistics.temperature import tempered
from onboard.storage.embedding import verified_embedding
from onboard.versions.export.readmes import onnx_readme
from onboard.versions.fetch import Fetched
from onboard.versions.readouts import readout_of

MODEL: Final = "model.onnx"
AGREES_TO: Final = 1e-4  # maximum difference of log-probabilities between PyTorch and onnxruntime
OPSET: Final = 17
MOST_BYTES: Final = 2_000_000_000  # limit of a single protobuf file
_TOKENIZER: Final = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "spiece.model")
_TRIED: Final = (  # of different lengths, so that some are padded
    ("Fine.", "It is."),
    ("The second part was better than the first, which nobody had expected.", "Somebody was surprised."),
    ("It came late and was broken when we opened the box, and no one answered our letter.", "All went well."),
)


class Conditioned(nn.Module):
    """A T5 for one task that includes the generated adapters and the label words.

    Args:
        engine: with the hypernetwork of the version.
        z: (t,) the task embedding.
        readout: the version's readout, or None.
        temperature: of the probabilities.
    """

    def __init__(
        self, engine: Engine, z: np.ndarray, words: Sequence[str], readout: Readout | None, temperature: float = 1.0
    ) -> None:
        super().__init__()
        self.backbone = engine.backbone
        self._attachment = engine.attachment
        with torch.no_grad():
            self._adapters = engine.hypernetwork(torch.from_numpy(z)[None].to(engine.device))
        start = engine.backbone.config.decoder_start_token_id
        self._tries = PackedTries.pack([engine.trie(words)], start, engine.device)
        width = BLOCKS * engine.backbone.config.d_model
        self._readout = None if readout is None else _LinearReadout(readout, width).to(engine.device)
        self._tokens = engine.encoder.separator, engine.encoder.eos_id
        self._temperature = temperature

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Map token ids (B, S) and mask (B, S), 1 for tokens, to log-probabilities (B, K)."""
        with self._attachment.using(self._adapters):
            states = self.backbone.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            logs = label_log_probabilities(self.backbone, states, attention_mask, self._tries, None)
        if self._readout is None:
            return self._tempered(logs)
        with self._attachment.bare():
            features = readout_features(self.backbone.encoder, input_ids, attention_mask, *self._tokens)
        return self._tempered(self._readout(logs, features))

    def _tempered(self, logs: Tensor) -> Tensor:
        return logs if self._temperature == 1.0 else (logs / self._temperature).log_softmax(-1)


class _LinearReadout(nn.Module):
    """Log-probabilities (B, K) of embedding and readout combined, as in `Readout.beside`."""

    def __init__(self, readout: Readout, width: int) -> None:
        super().__init__()
        self._columns, self._of_roots = readout.columns(width).tolist(), readout.of_roots
        weights = readout.weights.astype(np.float32) * np.float32(readout.scale)
        self._weights = nn.Parameter(torch.from_numpy(weights), requires_grad=False)
        self._bias = nn.Parameter(torch.from_numpy(readout.bias.astype(np.float32)), requires_grad=False)
        self._share = readout.share

    def forward(self, own: Tensor, features: Tensor) -> Tensor:
        selected = features[:, self._columns]
        inputs = selected.sign() * selected.abs().sqrt() if self._of_roots else selected
        scores = (inputs @ self._weights.T + self._bias).softmax(-1)
        return ((1.0 - self._share) * own.exp() + self._share * scores).log()


def export_onnx(services: Services, reference: str, output: Path) -> Fetched:
    """Write `model.onnx`, the tokenizer, `labels.json` and a README, and compare the model with the served version.

    Args:
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, created if missing.

    Raises:
        NotFoundError: the version does not exist.
        ConflictError: it has no embedding.
        DamagedError: stored bytes are missing or do not match their digest, or the model's answers differ.
        PinMismatchError: the base or hypernetwork that the version is pinned to is not available.
        InputError: packages are missing, or the T5 is too large for an ONNX file.
        NotAllowedError, StorageError: the folder cannot be written.
    """
    runtime = _packages()
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    version.require_embedding("to export", f"onboard fetch {version.reference}")
    base = require_base(services, version)
    z = verified_embedding(services.read(version.artifact), version)
    readout = readout_of(services, version)
    engine = engine_at(services, base, version.hypernetwork_version)
    size = sum(parameter.numel() * 4 for parameter in engine.backbone.parameters())
    if size > MOST_BYTES:
        raise InputError("onnx-too-large", base=base.name, gigabytes=size / 1e9)
    with temporary_folder("onboard-export-") as folder:
        path = folder / MODEL
        write_model(Conditioned(engine, z, version.words, readout, version.temperature), engine, path)
        _require_agreement(runtime, path, engine, partial(_served, engine, z, version, readout))
        parts = {MODEL: partial(_copy, path), **_beside(version, base, engine)}
        return Fetched(version, write_parts(output, parts))


def write_model(conditioned: Conditioned, engine: Engine, path: Path) -> None:
    """Trace the model and write it, for batches and texts of any length."""
    input_ids, mask = pad(_ids(engine), engine.encoder.pad_id)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns about sizes that are constant
        torch.onnx.export(
            conditioned.eval(),
            (input_ids.to(engine.device), mask.to(engine.device)),
            str(path),
            input_names=["input_ids", "attention_mask"],
            output_names=["log_probabilities"],
            dynamic_axes={
                "input_ids": {0: "rows", 1: "tokens"},
                "attention_mask": {0: "rows", 1: "tokens"},
                "log_probabilities": {0: "rows"},
            },
            opset_version=OPSET,
            dynamo=False,
        )


def _ids(engine: Engine) -> list[list[int]]:
    return engine.encoder.encode([*((first, None) for first, _ in _TRIED), *_TRIED])


def _served(
    engine: Engine, z: np.ndarray, version: EmbeddingVersion, readout: Readout | None, ids: Sequence[Sequence[int]]
) -> np.ndarray:
    """Return log-probabilities (n, K) as a predictor computes them."""
    probabilities = probabilities_of(engine, ids, z, engine.trie(version.words), readout)
    logs: np.ndarray = np.log(tempered(probabilities, version.temperature))
    return logs


def _require_agreement(runtime: Any, path: Path, engine: Engine, served: Any) -> None:
    """Raise DamagedError unless the exported model gives the same answers, with and without padding."""
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ids = _ids(engine)
    expected = served(ids)
    for rows in (list(range(len(ids))), *([row] for row in range(len(ids)))):
        input_ids, mask = pad([ids[row] for row in rows], engine.encoder.pad_id)
        (logs,) = session.run(None, {"input_ids": input_ids.numpy(), "attention_mask": mask.numpy()})
        apart = float(np.abs(logs - expected[rows]).max())
        if not apart <= AGREES_TO:
            raise DamagedError("onnx-answers-differ", apart=apart)


def _beside(version: EmbeddingVersion, base: Base, engine: Engine) -> dict[str, Any]:
    """Return the files to use with the model: tokenizer, labels, README."""
    labels = {
        "labels": list(version.labels),
        "words": list(version.words),
        "low": version.low,
        "high": version.high,
        "pairs": version.pairs,
        "pair_separator": engine.encoder.pair_separator,
        "max_tokens": engine.encoder.max_tokens,
        "end_of_sequence": engine.encoder.eos_id,
        "padding": engine.encoder.pad_id,
    }
    files = {
        "labels.json": json.dumps(labels, ensure_ascii=False, indent=2).encode() + b"\n",
        "README.md": onnx_readme(version, base, engine, AGREES_TO).encode(),
    }
    for name in _TOKENIZER:
        if (base.folder / "backbone" / name).is_file():
            files[name] = (base.folder / "backbone" / name).read_bytes()
    return {name: partial(write_whole, content=content) for name, content in files.items()}


def _copy(source: Path, target: Path) -> None:
    """Copy a file atomically."""
    part = part_beside(target)
    try:
        with source.open("rb") as reader, open_new(part) as writer:
            shutil.copyfileobj(reader, writer)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _packages() -> Any:
    try:
        import onnx  # noqa: F401 - what writes the model needs it
        import onnxruntime
    except ImportError as error:
        raise InputError("onnx-not-installed", reason=error.name) from error
    return onnxruntime
