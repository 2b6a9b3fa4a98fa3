"""Read and write `readout.safetensors`, which accompanies an embedding and is pinned to the same base."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, PinMismatchError
from onboard.statistics.readout import Readout
from onboard.storage.embedding import read_facts

# Name of the weights, by whether they apply to signed roots of the features. Releases that do not support roots refuse
# such a file instead of answering wrongly.
_WEIGHTS: Final = {False: "weights", True: "root_weights"}
_INDEPENDENT: Final = "root_weights_of_independent_labels"  # scores do not sum to one


def readout_tensors(readout: Readout) -> dict[str, np.ndarray]:
    """Return the tensors of a readout, for its file or for a version without an embedding."""
    weights = np.ascontiguousarray(readout.weights, dtype=np.float16)
    name = _INDEPENDENT if readout.independent else _WEIGHTS[readout.of_roots]
    return {name: weights, "bias": readout.bias}


def readout_of_tensors(tensors: Mapping[str, np.ndarray], scale: float, share: float) -> Readout:
    """Return the readout of tensors from `readout_tensors`.

    Args:
        scale: see `Readout`.
        share: see `Readout`.

    Raises:
        KeyError: the tensors contain no readout.
        DamagedError: shapes do not match, or numbers are not finite.
    """
    if _INDEPENDENT in tensors:
        weights, bias = tensors[_INDEPENDENT], tensors["bias"]
        return _sound(Readout(weights, scale, bias, share, of_roots=True, independent=True))
    of_roots = _WEIGHTS[True] in tensors
    return _sound(Readout(tensors[_WEIGHTS[of_roots]], scale, tensors["bias"], share, of_roots))


def _sound(readout: Readout) -> Readout:
    weights, bias = readout.weights, readout.bias
    whole = weights.ndim == 2 and bias.shape == weights.shape[:1]
    numbers = (weights, bias, np.array([readout.scale, readout.share]))
    if not whole or not all(np.isfinite(part).all() for part in numbers):
        raise DamagedError("readout-unreadable")
    return readout


def pack_readout(readout: Readout, base: str) -> bytes:
    """Return the file of a readout, pinned to a base by its digest."""
    from safetensors.numpy import save

    facts = {"base": base, "scale": json.dumps(readout.scale), "share": json.dumps(readout.share)}
    return with_sorted_header(save(readout_tensors(readout), metadata=facts))


def unpack_readout(content: bytes, base: str) -> Readout:
    """Return the readout in a file.

    Args:
        base: digest of the base that is used with it.

    Raises:
        DamagedError: the bytes contain no readout, or numbers that are not finite.
        PinMismatchError: it belongs to another base.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors, facts = load(content), read_facts(content)
        readout = readout_of_tensors(tensors, float(facts["scale"]), float(facts["share"]))
        pinned = str(facts["base"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedError("readout-unreadable") from error
    if pinned != base:
        raise PinMismatchError("readout-of-other-base", pinned=pinned, present=base)
    return readout
