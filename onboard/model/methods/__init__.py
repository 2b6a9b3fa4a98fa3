"""What can learn a task on the same frozen T5, hooks and scoring: the methods by name, and their builders.

A hypernetwork makes the adapters of all tasks, and a task is an embedding z (`METHODS`):

    hyperformer_plus_plus.py    HyperFormer++: one hypernetwork a stack
    open_start.py               a start of it from which the task embedding reaches far
    hyperformer.py              plain HyperFormer: one hypernetwork in every layer and position

Or a task has parameters of its own, and nothing is shared but the backbone (`TASK_METHODS`):

    adapter_shaped.py           what all adapters share: places, the T5's norms, names
    adapters.py                 Adapters
    adapters_dagger.py          Adapters†: with a layer norm that tasks may share
    pfeiffer_adapter.py         after self-attention only
    adapter_drop.py             in the upper blocks only
    adapter_low_rank.py         D and U of rank one
    phm_adapter.py              D and U as sums of Kronecker products
    compacter.py                the same with shared A and fast weights of rank one; Compacter++: feed-forward only
    prompt_tuning.py            vectors in front of the input, from random numbers or from tokens
    bitfit.py                   biases
    intrinsic_said.py           few numbers, projected onto all matrices
    full_fine_tuning.py         everything; compared only
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from onboard.errors import InputError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods.adapter_drop import AdapterDrop
from onboard.model.methods.adapter_low_rank import AdapterLowRank
from onboard.model.methods.adapters import Adapters
from onboard.model.methods.adapters_dagger import AdaptersDagger
from onboard.model.methods.bitfit import BitFit
from onboard.model.methods.compacter import Compacter, CompacterPlusPlus
from onboard.model.methods.full_fine_tuning import FullFineTuning
from onboard.model.methods.hyperformer import PlainHyperFormer
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus
from onboard.model.methods.intrinsic_said import IntrinsicSaid
from onboard.model.methods.pfeiffer_adapter import PfeifferAdapter
from onboard.model.methods.phm_adapter import PhmAdapter
from onboard.model.methods.prompt_tuning import PromptTuningRandom, PromptTuningTokens
from onboard.model.task_module import TaskModule


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


class TaskMethod(Protocol):
    """What is asked of a method that trains a task's own parameters before they are there; see `TASK_METHODS`.

    Attributes:
        as of `TaskModule`.
    """

    METHOD: str
    TITLE: str
    LEARNING_RATE: float
    INITIALISATION: str
    DEFAULTS: Mapping[str, Any]
    PUBLISHES: bool
    MIXES: bool

    def __call__(self, backbone: Any, **settings: Any) -> TaskModule:
        """The parameters of a new task on this backbone, as they start. Raises InputError as `TaskModule`."""


_ALL: tuple[Method, ...] = (HyperFormerPlusPlus, PlainHyperFormer)
METHODS: Final[Mapping[str, Method]] = {method.METHOD: method for method in _ALL}
FIRST_METHOD: Final = HyperFormerPlusPlus.METHOD  # of files that do not name theirs

_ALL_OF_TASKS: tuple[TaskMethod, ...] = (
    Adapters, AdaptersDagger, PfeifferAdapter, AdapterDrop, AdapterLowRank, PhmAdapter, Compacter, CompacterPlusPlus,
    PromptTuningRandom, PromptTuningTokens, BitFit, IntrinsicSaid, FullFineTuning,
)  # fmt: skip
TASK_METHODS: Final[Mapping[str, TaskMethod]] = {method.METHOD: method for method in _ALL_OF_TASKS}


def new_task(method: str, backbone: Any, settings: Mapping[str, Any] | None = None) -> TaskModule:
    """The parameters of a task that is learned with a method of its own, as they start.

    Args:
        method: one of `TASK_METHODS`.
        backbone: a stock T5.
        settings: any of the method's `DEFAULTS`, which hold for the others.

    Raises:
        InputError: no such method or setting, a size that does not fit, or a backbone that the method does not support.
    """
    if method not in TASK_METHODS:
        raise InputError("unknown-task-method", method=method, task_methods=list(TASK_METHODS))
    return TASK_METHODS[method](backbone, **(settings or {}))


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
        raise InputError("unknown-base-method", method=method, methods=list(METHODS))
    return METHODS[method].of(sizes)
