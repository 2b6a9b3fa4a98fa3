"""Methods that learn tasks on the same frozen T5, with the same hooks and scoring, by name, and their builders.

A hypernetwork generates the adapters of all tasks, and a task is an embedding z (`METHODS`):

    hyperformer_plus_plus.py    HyperFormer++: one hypernetwork per stack
    open_start.py               an initialization with a large effect of the task embedding
    hyperformer.py              plain HyperFormer: one hypernetwork in every layer and position

Or each task has separate parameters, and only the backbone is shared (`TASK_METHODS`):

    adapter_shaped.py           common parts of all adapters: places, the T5's norms, names
    adapters.py                 Adapters
    adapters_dagger.py          Adapters†: with a layer norm that tasks may share
    pfeiffer_adapter.py         after self-attention only
    adapter_drop.py             in the upper blocks only
    adapter_low_rank.py         D and U of rank one
    phm_adapter.py              D and U as sums of Kronecker products
    compacter.py                the same with shared A and fast weights of rank one; Compacter++: feed-forward only
    prompt_tuning.py            vectors before the input, initialized randomly or from tokens
    bitfit.py                   biases
    intrinsic_said.py           few numbers, projected onto all matrices
    full_fine_tuning.py         everything; for comparison only
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
    """A method with a hypernetwork, before anything is built; `METHODS` contains each by name.

    Attributes:
        METHOD: its name in `METHODS`.
        TITLE: its name in sentences.
        EMBEDDING_SIZE: default of t, the size of a task embedding.
    """

    METHOD: str
    TITLE: str
    EMBEDDING_SIZE: int

    def of(self, sizes: Mapping[str, int]) -> Hypernetwork:
        """Build a hypernetwork of these sizes; some have defaults of the method."""


class TaskMethod(Protocol):
    """A method with task-specific parameters, before anything is built; see `TASK_METHODS`.

    Attributes:
        as in `TaskModule`.
    """

    METHOD: str
    TITLE: str
    LEARNING_RATE: float
    INITIALISATION: str
    DEFAULTS: Mapping[str, Any]
    PUBLISHES: bool
    MIXES: bool

    def __call__(self, backbone: Any, **settings: Any) -> TaskModule:
        """Return the initial parameters of a new task on this backbone. Raises InputError as `TaskModule`."""


_ALL: tuple[Method, ...] = (HyperFormerPlusPlus, PlainHyperFormer)
METHODS: Final[Mapping[str, Method]] = {method.METHOD: method for method in _ALL}
FIRST_METHOD: Final = HyperFormerPlusPlus.METHOD  # of files without a method

_ALL_OF_TASKS: tuple[TaskMethod, ...] = (
    Adapters, AdaptersDagger, PfeifferAdapter, AdapterDrop, AdapterLowRank, PhmAdapter, Compacter, CompacterPlusPlus,
    PromptTuningRandom, PromptTuningTokens, BitFit, IntrinsicSaid, FullFineTuning,
)  # fmt: skip
TASK_METHODS: Final[Mapping[str, TaskMethod]] = {method.METHOD: method for method in _ALL_OF_TASKS}


def new_task(method: str, backbone: Any, settings: Mapping[str, Any] | None = None) -> TaskModule:
    """Return the initial parameters of a task with a task-specific method.

    Args:
        method: one of `TASK_METHODS`.
        backbone: a stock T5.
        settings: values that replace the method's `DEFAULTS`.

    Raises:
        InputError: an unknown method or setting, an unsuitable size, or a backbone that the method does not support.
    """
    if method not in TASK_METHODS:
        raise InputError("unknown-task-method", method=method, task_methods=list(TASK_METHODS))
    return TASK_METHODS[method](backbone, **(settings or {}))


def new_hypernetwork(method: str, sizes: Mapping[str, int]) -> Hypernetwork:
    """Return a hypernetwork with the authors' initialization.

    Args:
        method: one of `METHODS`.
        sizes: d_model, encoder_layers, decoder_layers and bottleneck; optional task_embedding_size, projector_width and
            conditioning_size.

    Raises:
        InputError: the method is unknown.
        TypeError: a size is missing or unknown.
    """
    if method not in METHODS:
        raise InputError("unknown-base-method", method=method, methods=list(METHODS))
    return METHODS[method].of(sizes)
