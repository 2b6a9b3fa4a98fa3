"""The fine-tuning methods by name, and what a version of each is made of. Without torch, which makes them.

A base's own method, a hypernetwork, makes a version of an embedding; it is what a job takes where nothing is asked for.
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
FROM_ADAPTERS: Final = "adapters-dagger"  # it alone has what a hypernetwork makes, so it can start at an embedding's
COMPARED_ONLY: Final = "full-fine-tuning"
AUTO: Final = "auto"  # the base's own, a readout alone, and `SMALL`: the cheapest that is as good as the best
SMALL: Final = ("bitfit", "adapters")  # that `auto` tries behind the others, fewest bytes first
WITHOUT_EMBEDDING: Final = (LINEAR, *OWN_WEIGHTS)  # what `--method` may name beside the base's own

WEIGHTS_FORMAT: Final = "onboard-task-weights-1"  # of the files of versions without an embedding
OWN_START: Final = "(own)"  # the parent of such a version: nothing learned before; no task can be called so

_CONTENT: Final[Mapping[str, Content]] = {
    **dict.fromkeys(WITH_EMBEDDING, "embedding"),
    **dict.fromkeys(OWN_WEIGHTS, "weights"),
    LINEAR: "readout",
}


def content_of(method: str, what: str) -> Content:
    """What a version of a method is made of.

    Args:
        method: its name.
        what: the version, for the error.

    Raises:
        InputError: this release has no such method.
    """
    if method not in _CONTENT:
        raise InputError("method-unknown-to-release", method=method, part=what)  # fmt: skip
    return _CONTENT[method]


def require_weights_format(metadata: Mapping[str, Any]) -> None:
    """Raise InputError unless a file's metadata says that it is of the format of versions without an embedding."""
    if metadata.get("format") != WEIGHTS_FORMAT:
        raise InputError("task-weights-format-unknown", format=metadata.get("format"))


def require_method(method: str, of_base: str, base: str) -> None:
    """Raise InputError unless a job on a base can be asked for a method.

    Args:
        method: its name; empty leaves it to the base.
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
    """Settings of a method by name, of NAME=VALUE with a JSON value each.

    Raises:
        InputError: one is of another form, or named twice.
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
