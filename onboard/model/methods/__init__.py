"""What can make adapters, on the same frozen T5, hooks and scoring: the methods by name, and their builder.

    hyperformer_plus_plus.py    HyperFormer++: adapters of a task embedding, one hypernetwork a stack
    open_start.py               a start of it from which the task embedding reaches far
    hyperformer.py              plain HyperFormer: one hypernetwork in every layer and position

Full fine-tuning needs no module: the backbone's parameters are trained, and `Engine.bare_log_probabilities` scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from onboard.errors import InputError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods.hyperformer import PlainHyperFormer
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus


class Method(Protocol):
    """What recipes, bases and files ask of a method before anything of it is built; `METHODS` has each by its name.

    Attributes:
        METHOD: its name there.
        TITLE: its name in sentences.
        EMBEDDING_SIZE: t, numbers of a task embedding, where nothing else is said.
    """

    METHOD: str
    TITLE: str
    EMBEDDING_SIZE: int

    def of(self, sizes: Mapping[str, int]) -> Hypernetwork:
        """A hypernetwork of these sizes; the method's own hold for those that may be left out."""


_ALL: tuple[Method, ...] = (HyperFormerPlusPlus, PlainHyperFormer)
METHODS: Final[Mapping[str, Method]] = {method.METHOD: method for method in _ALL}
FIRST_METHOD: Final = HyperFormerPlusPlus.METHOD  # of files that do not name theirs


def new_hypernetwork(method: str, sizes: Mapping[str, int]) -> Hypernetwork:
    """A hypernetwork with the authors' initialisation.

    Args:
        method: one of `METHODS`.
        sizes: d_model, encoder_layers, decoder_layers and bottleneck; the method's own defaults hold for
            task_embedding_size, projector_width and conditioning_size where they are missing.

    Raises:
        InputError: no such method.
        TypeError: a size is missing or unknown.
    """
    if method not in METHODS:
        raise InputError(f"There is no method {method!r} for a base.", f"Use one of: {', '.join(METHODS)}.")
    return METHODS[method].of(sizes)
