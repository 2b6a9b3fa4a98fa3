"""Prompt tuning (Lester et al., arXiv 2104.08691): trained vectors before the encoder's embedded input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from onboard.data.limits import MAX_TOKENS
from onboard.errors import InputError
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import OwnParts, TaskWeights

_RANGE = 0.5


class PromptTuning(TaskModule):
    """P trained vectors (P, h) in the encoder's self-attention and in cross-attention. Nothing else is trained."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"tokens": 100}

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        tokens, most = self.count("tokens"), self.most_tokens(backbone)
        if tokens > most:
            raise InputError("prompt-too-long", tokens=tokens, method=self.TITLE, most=most)
        self.prompt = nn.Parameter(torch.empty(tokens, backbone.config.d_model, device=self.device))
        self.start(backbone)

    def most_tokens(self, backbone: Any) -> int:  # noqa: ARG002 (another start asks it)
        """Return the maximum length of the prompt: the maximum number of tokens of a text."""
        return MAX_TOKENS

    def start(self, backbone: Any) -> None:  # noqa: ARG002 (another start asks it)
        """Initialize uniformly between -0.5 and 0.5."""
        nn.init.uniform_(self.prompt, -_RANGE, _RANGE)

    def weights(self) -> TaskWeights:
        """Return the prompt, without adapters."""
        return TaskWeights(None, (OwnParts(normed=False, prompt=self.prompt),))

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """Return `prefix_shared`."""
        return {"prefix_shared": ("prompt", ...)}


class PromptTuningRandom(PromptTuning):
    """Prompt tuning with random initialization."""

    METHOD: ClassVar[str] = "prompt-tuning-r"
    TITLE: ClassVar[str] = "Prompt tuning -R"
    LEARNING_RATE: ClassVar[float] = 0.03
    INITIALISATION: ClassVar[str] = "Uniform between -0.5 and 0.5."


class PromptTuningTokens(PromptTuning):
    """Prompt tuning initialized with the embeddings of the vocabulary's first tokens."""

    METHOD: ClassVar[str] = "prompt-tuning-t"
    TITLE: ClassVar[str] = "Prompt tuning -T"
    LEARNING_RATE: ClassVar[float] = 0.3
    INITIALISATION: ClassVar[str] = "The embeddings of the vocabulary's first tokens."

    def most_tokens(self, backbone: Any) -> int:
        """Return the maximum length of the prompt: at most a text's maximum, and the vocabulary's size."""
        return min(MAX_TOKENS, int(backbone.config.vocab_size))

    def start(self, backbone: Any) -> None:
        """Initialize with the first rows of the token embedding."""
        with torch.no_grad():
            self.prompt.copy_(backbone.shared.weight[: len(self.prompt)])
