"""The names of the fine-tuning methods, and what their versions consist of. Does not import torch.

By default a job uses the base's own method, a hypernetwork; its versions are embeddings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from onboard.domain.names import did_you_mean
from onboard.errors import InputError

Content = Literal["embedding", "weights", "readout"]

HYPERNETWORKS: Final = ("hyperformer++", "hyperformer")
WITH_EMBEDDING: Final = ("", *HYPERNETWORKS)  # versions of the first releases name no method
LINEAR: Final = "linear"  # a readout alone
OWN_WEIGHTS: Final = (
    "adapters", "adapters-dagger", "pfeiffer-adapter", "adapter-drop", "adapter-low-rank", "phm-adapter", "compacter",
    "compacter++", "prompt-tuning-r", "prompt-tuning-t", "bitfit", "intrinsic-said",
)  # fmt: skip
FROM_ADAPTERS: Final = "adapters-dagger"  # it has a hypernetwork's adapters, so it can start at an embedding's
COMPARED_ONLY: Final = "full-fine-tuning"
AUTO: Final = "auto"  # the cheapest of the base's own, a readout alone, and `SMALL` that is as good as the best
SMALL: Final = ("bitfit", "adapters")  # methods that `auto` tries after the others, fewest bytes first
WITHOUT_EMBEDDING: Final = (LINEAR, *OWN_WEIGHTS)  # values of `--method` besides the base's own

WEIGHTS_FORMAT: Final = "onboard-task-weights-1"  # of the files of versions without an embedding
OWN_START: Final = "(own)"  # parent of versions that started from nothing learned; not a valid task name

_CONTENT: Final[Mapping[str, Content]] = {
    **dict.fromkeys(WITH_EMBEDDING, "embedding"),
    **dict.fromkeys(OWN_WEIGHTS, "weights"),
    LINEAR: "readout",
}


def content_of(method: str, what: str) -> Content:
    """Return what a version of a method consists of.

    Args:
        what: the version, for the error.

    Raises:
        InputError: this release does not have the method.
    """
    if method not in _CONTENT:
        raise InputError("method-unknown-to-release", method=method, part=what)  # fmt: skip
    return _CONTENT[method]


def require_weights_format(metadata: Mapping[str, Any]) -> None:
    """Raise InputError unless a file's metadata has the format of versions without an embedding."""
    if metadata.get("format") != WEIGHTS_FORMAT:
        raise InputError("task-weights-format-unknown", format=metadata.get("format"))


def require_method(method: str, of_base: str, base: str) -> None:
    """Raise InputError unless a job may use a method on a base.

    Args:
        method: its name; empty means the base's own.
        of_base: the base's own method.
        base: its name, for the error.
    """
    names = of_base, AUTO, *WITHOUT_EMBEDDING
    if method in ("", *names):
        return
    facts: dict[str, Any] = {"method": method, "allowed": list(names)}
    if method == COMPARED_ONLY:
        raise InputError("method-compared-only", **facts)
    if method in HYPERNETWORKS:
        raise InputError("method-not-of-base", base=base, of_base=of_base, **facts)
    raise InputError("unknown-method", guess=did_you_mean(method, names), **facts)


def method_settings(written: Iterable[str]) -> dict[str, Any]:
    """Parse settings of a method, NAME=VALUE with a JSON value each.

    Raises:
        InputError: one is invalid or repeated.
    """
    settings: dict[str, Any] = {}
    for setting in written:
        name, equals, value = setting.partition("=")
        try:
            number = json.loads(value) if name.strip() and equals else None
        except ValueError:
            number = None
        if number is None or name.strip() in settings:
            trouble = "is given twice" if number is not None else "is not of the form NAME=NUMBER"
            raise InputError("method-setting-malformed", method_setting=setting, trouble=trouble)  # fmt: skip
        settings[name.strip()] = number
    return settings
