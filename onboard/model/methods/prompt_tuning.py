"""Prompt tuning (Lester et al., arXiv 2104.08691): trained vectors in front of the encoder's embedded input."""

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
    """P vectors (P, h), seen by the encoder's self-attention and by cross-attention. Nothing else is trained."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"tokens": 100}

    def __init__(self, backbone: Any, **settings: Any) -> None:
        super().__init__(backbone, **settings)
        tokens, most = self.count("tokens"), self.most_tokens(backbone)
        if tokens > most:
            raise InputError("prompt-too-long", tokens=tokens, method=self.TITLE, most=most)
        self.prompt = nn.Parameter(torch.empty(tokens, backbone.config.d_model, device=self.device))
        self.start(backbone)

    def most_tokens(self, backbone: Any) -> int:  # noqa: ARG002 (another start asks it)
        """The longest prompt: as many tokens as a text may have."""
        return MAX_TOKENS

    def start(self, backbone: Any) -> None:  # noqa: ARG002 (another start asks it)
        """Uniform between -0.5 and 0.5."""
        nn.init.uniform_(self.prompt, -_RANGE, _RANGE)

    def weights(self) -> TaskWeights:
        """The prompt; no adapters."""
        return TaskWeights(None, (OwnParts(normed=False, prompt=self.prompt),))

    def official_places(self) -> dict[str, tuple[str, Any]]:
        """`prefix_shared`."""
        return {"prefix_shared": ("prompt", ...)}


class PromptTuningRandom(PromptTuning):
    """Prompt tuning that starts at random."""

    METHOD: ClassVar[str] = "prompt-tuning-r"
    TITLE: ClassVar[str] = "Prompt tuning -R"
    LEARNING_RATE: ClassVar[float] = 0.03
    INITIALISATION: ClassVar[str] = "Uniform between -0.5 and 0.5."


class PromptTuningTokens(PromptTuning):
    """Prompt tuning that starts at the embeddings of the vocabulary's first tokens."""

    METHOD: ClassVar[str] = "prompt-tuning-t"
    TITLE: ClassVar[str] = "Prompt tuning -T"
    LEARNING_RATE: ClassVar[float] = 0.3
    INITIALISATION: ClassVar[str] = "The embeddings of the vocabulary's first tokens."

    def most_tokens(self, backbone: Any) -> int:
        """As many tokens as a text may have, and as there are to start from."""
        return min(MAX_TOKENS, int(backbone.config.vocab_size))

    def start(self, backbone: Any) -> None:
        """The first rows of the token embedding."""
        with torch.no_grad():
            self.prompt.copy_(backbone.shared.weight[: len(self.prompt)])
