"""Reading checkpoints of the authors' repository (rabeehk/hyperformer): HyperFormer++ and the paper's HyperFormer."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.model.backbone import SUPPORTED
from onboard.model.exporters import CROSS_BIAS, T5_FIELDS, TASK_PREFIX, TIED
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods import new_hypernetwork
from onboard.model.methods.hyperformer import PLAIN_PROJECTOR, PlainHyperFormer, place_prefix
from onboard.model.methods.hyperformer_plus_plus import PROJECTOR, STACK_PREFIX, HyperFormerPlusPlus
from onboard.model.quantised_backbone import assign_weights

NAMED = 5  # tensors that an error names
_ONLY = "Only checkpoints of HyperFormer++ (efficient_unique_hyper_net) and of the paper's HyperFormer can be read."
_CONVERT = (
    "On a machine where you trust its origin, save its state_dict as model.safetensors: "
    "safetensors.torch.save_model(model, 'model.safetensors')"
)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds.

    Args:
        backbone: a stock T5 in float32; its weights may be mapped from the file.
        hypernetwork: in float32.
        embeddings: z of every task, (t,) float32, in the order of config.json or else of the alphabet.
        described: config.json; empty when there is none.
        notes: sentences on what could not be taken over.
    """

    backbone: Any
    hypernetwork: Hypernetwork
    embeddings: dict[str, Tensor]
    described: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_checkpoint(folder: str | Path) -> Checkpoint:
    """A checkpoint with the authors' parameter names: `model.safetensors` or `pytorch_model.bin`.

    Sizes are read from the tensors; what tensors cannot tell (dropout, epsilon, special tokens) from `config.json`, at
    its top or under "t5", else T5's defaults hold. Weights stay mapped from the file where the file allows it.

    Raises:
        NotFoundError: the folder has neither file.
        DamagedError: a file cannot be read.
        InputError: it is a checkpoint of another method (which is named), tensors are missing, unexpected or of another
            shape, or the .bin holds anything but tensors (nothing of it is executed).
    """
    folder = Path(folder)
    described = _described(folder)
    tensors = _tensors(folder)
    _refuse_other_methods(tensors, described)
    with torch.device("meta"):
        hypernetwork = _hypernetwork(tensors)
        backbone = _backbone(tensors, described)
    embeddings = {name.removeprefix(TASK_PREFIX): z for name, z in tensors.items() if name.startswith(TASK_PREFIX)}
    _check(tensors, backbone, hypernetwork, embeddings)
    notes = _cross_bias(tensors)
    left_out = TIED if _head_tied(tensors) else TIED[1:]
    own = {name: tensors[name].float() for name in backbone.state_dict() if name in tensors and name not in left_out}
    assign_weights(backbone, own)
    hypernetwork.to_empty(device="cpu")
    for name, view in hypernetwork.official_views().items():
        view.copy_(tensors[name])
    listed = [name for name in described.get("tasks") or () if isinstance(name, str) and name in embeddings]
    order = [*listed, *sorted(embeddings.keys() - set(listed))]
    return Checkpoint(
        backbone, hypernetwork, {name: embeddings[name].float().clone() for name in order}, described, notes
    )


def _described(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        return {}
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedError(f"{path} is not readable as JSON: {error}") from error
    if not isinstance(described, dict):
        raise DamagedError(f"{path} holds no JSON object.")
    return described


def _tensors(folder: Path) -> dict[str, Tensor]:
    path, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    if path.is_file():
        try:
            return load_file(path)
        except SafetensorError as error:
            raise DamagedError(f"{path} is not readable as safetensors: {error}") from error
    if pickled.is_file():
        return _unpickled(pickled)
    raise NotFoundError(
        f"There is no model.safetensors and no pytorch_model.bin in {folder}.",
        "Name the folder that the authors' trainer wrote its last checkpoint to (output_dir).",
    )


def _unpickled(path: Path) -> dict[str, Tensor]:
    """The tensors of a .bin by PyTorch's restricted unpickler, which executes nothing."""
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{path} holds more than tensors, or is no PyTorch file; nothing of it was executed.", _CONVERT
        ) from error
    except (RuntimeError, EOFError, OSError) as error:
        raise DamagedError(f"{path} is not readable as a PyTorch file: {error}", "Copy it again.") from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{path} is not a model's state_dict: it holds more than named tensors.", _CONVERT)
    return loaded


def _refuse_other_methods(tensors: Mapping[str, Tensor], described: Mapping[str, Any]) -> None:
    stack, place = STACK_PREFIX.format(stack="encoder"), place_prefix("encoder", 0, 1)
    names = list(tensors)
    if f"{stack}feed_forward_up_sampler_hyper_net.weight_generator.0.weight" in tensors:
        kind = "the authors' released configuration named HyperFormer (unique_hyper_net), not the paper's"
    elif any("phm_rule" in name or ".W_left" in name for name in names):
        kind = "a Compacter or low-rank checkpoint"
    elif any(name.startswith(f"{place}adapters.") for name in names):
        kind = "a checkpoint of adapters without a hypernetwork"
    elif not any(name.startswith((stack, f"{place}meta_")) for name in names):
        kind = "a T5 without a hypernetwork"
    else:
        kind = ""
    if kind:
        raise InputError(f"This is not a HyperFormer or HyperFormer++ checkpoint: it is {kind}.", _ONLY)
    activation = _section(described, "adapter").get("non_linearity", "gelu_new")
    if activation != "gelu_new":
        raise InputError(f"These adapters use the activation {activation!r}.", "Only gelu_new can be read.")


def _hypernetwork(tensors: Mapping[str, Tensor]) -> Hypernetwork:
    """Of the tensors' method and sizes, not with their values."""
    stack, place = STACK_PREFIX.format(stack="encoder"), place_prefix("encoder", 0, 1)
    shared = any(name.startswith(stack) for name in tensors)
    projector = stack + PROJECTOR if shared else PLAIN_PROJECTOR
    down = f"{stack}down_sampler_hyper_net" if shared else f"{place}meta_down_sampler"
    width, joined = _shape(tensors, f"{projector}.0.weight", 2)
    sizes = {
        "d_model": _shape(tensors, "shared.weight", 2)[1],
        "encoder_layers": _blocks(tensors, "encoder"),
        "decoder_layers": _blocks(tensors, "decoder"),
        "bottleneck": _shape(tensors, f"{down}.bias_generator.0.bias", 1)[0],
        "task_embedding_size": joined // 3 if shared else joined,
        "projector_width": width,
        "conditioning_size": _shape(tensors, f"{projector}.2.weight", 2)[0],
    }
    return new_hypernetwork(HyperFormerPlusPlus.METHOD if shared else PlainHyperFormer.METHOD, sizes)


def _backbone(tensors: Mapping[str, Tensor], described: Mapping[str, Any]) -> Any:
    """A stock T5 of the tensors' sizes, not with their values."""
    import transformers

    section = _section(described, "t5") or described
    attention, feed_forward = "encoder.block.0.layer.0.SelfAttention", "encoder.block.0.layer.1.DenseReluDense"
    buckets, heads = _shape(tensors, f"{attention}.relative_attention_bias.weight", 2)
    gated = f"{feed_forward}.wi_0.weight" in tensors
    default = "gated-gelu" if gated else "relu"
    settings = {
        "decoder_start_token_id": 0,
        "feed_forward_proj": default,
        **{key: section[key] for key in T5_FIELDS if section.get(key) is not None},
        # whether transformers scales the decoder's output hangs on this name
        "tie_word_embeddings": section.get(
            "scale_decoder_outputs", section.get("tie_word_embeddings", _head_tied(tensors))
        ),
        "d_model": _shape(tensors, "shared.weight", 2)[1],
        "d_kv": _shape(tensors, f"{attention}.q.weight", 2)[0] // heads,
        "d_ff": _shape(tensors, f"{feed_forward}.wo.weight", 2)[1],
        "num_heads": heads,
        "num_layers": _blocks(tensors, "encoder"),
        "num_decoder_layers": _blocks(tensors, "decoder"),
        "vocab_size": _shape(tensors, "shared.weight", 2)[0],
        "relative_attention_num_buckets": buckets,
    }
    kind = settings.pop("model_type", "t5")
    if kind not in SUPPORTED:
        raise InputError(f"config.json says that this is a {kind} model, not a T5.", _ONLY)
    if str(settings["feed_forward_proj"]).startswith("gated") != gated:
        settings["feed_forward_proj"] = default
    try:
        config = transformers.AutoConfig.for_model(kind, **settings)
    except (StrictDataclassError, TypeError, ValueError) as error:
        raise InputError(f"config.json does not describe a T5: {error}", "Correct it, or take it away.") from error
    return getattr(transformers, SUPPORTED[kind])(config)


def _section(described: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = described.get(name)
    return found if isinstance(found, dict) else {}


def _shape(tensors: Mapping[str, Tensor], name: str, dimensions: int) -> tuple[int, ...]:
    if name not in tensors:
        raise _unlike("lacks", [name])
    shape = tuple(tensors[name].shape)
    if len(shape) != dimensions:
        raise _unlike("has tensors of another shape:", [f"{name} {shape}"])
    return shape


def _blocks(tensors: Mapping[str, Tensor], stack: str) -> int:
    return len({found[1] for name in tensors if (found := re.match(rf"{stack}\.block\.(\d+)\.", name))})


def _head_tied(tensors: Mapping[str, Tensor]) -> bool:
    return TIED[0] not in tensors or torch.equal(tensors[TIED[0]], tensors["shared.weight"])


def _check(tensors: Mapping[str, Tensor], backbone: Any, hypernetwork: Hypernetwork, tasks: Iterable[str]) -> None:
    """Raise InputError unless the tensors are exactly those of this model."""
    expected = {name: tuple(value.shape) for name, value in backbone.state_dict().items() if name not in TIED}
    expected |= {name: tuple(value.shape) for name, value in hypernetwork.official_views().items()}
    named = list(tasks) or ["TASK"]
    expected |= {TASK_PREFIX + task: (hypernetwork.sizes["task_embedding_size"],) for task in named}
    if missing := sorted(expected.keys() - tensors.keys()):
        raise _unlike("lacks", missing)
    if unexpected := sorted(tensors.keys() - expected.keys() - {*TIED, CROSS_BIAS}):
        raise _unlike("holds what this model has not:", unexpected)
    wrong = [
        f"{name} {tuple(tensors[name].shape)} instead of {shape}"
        for name, shape in sorted(expected.items())
        if tuple(tensors[name].shape) != shape
    ]
    if wrong:
        raise _unlike("has tensors of another shape:", wrong)


def _unlike(what: str, tensors: list[str]) -> InputError:
    more = f" and {len(tensors) - NAMED} more" if len(tensors) > NAMED else ""
    return InputError(
        f"The checkpoint {what} {', '.join(tensors[:NAMED])}{more}.",
        f"Is it whole, and of an unchanged rabeehk/hyperformer? {_ONLY}",
        tensors=tensors,
    )


def _cross_bias(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    largest = float(tensors[CROSS_BIAS].abs().max()) if CROSS_BIAS in tensors else 0.0
    if not largest:
        return ()
    return (
        f"The checkpoint has a position bias in cross-attention (up to {largest:.2g}), which transformers dropped in "
        "its version 4; it was left out, so logits may differ a little from those of the authors' program.",
    )
