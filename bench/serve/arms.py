"""Programs that answer a batch: all read the same token ids and score the same label words in one decoder pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bench.harness.in_turn import Step
from bench.serve.drawing import draws
from bench.serve.loras import RecentLoras, lora, names_of

WORDS: Final = (("bad", "good"), ("no", "yes"), ("other", "same"), ("sad", "happy"))  # of the tasks, in turn
OURS, ONE, PEFT, RECENT, MERGED, BASE = "ours", "one task", "peft", "peft, 25 kept", "merged", "base"
ARMS: Final = (OURS, ONE, PEFT, RECENT, MERGED, BASE)


@dataclass(frozen=True)
class Arms:
    """The programs that answer a batch of one base.

    Args:
        engine: of the base.
        ids: token ids of the batch (rows, tokens).
        fresh: another copy of the base's T5.
    """

    engine: Any
    ids: Sequence[Sequence[int]]
    fresh: Callable[[], Any]

    def ours(self, tasks: int, kind: str) -> Step:
        """Adapters of the batch's own tasks made each time."""
        from onboard.domain.task import FIRST_HYPERNETWORK
        from onboard.model.batched import mixed_log_probabilities
        from onboard.model.on_demand import OnDemand

        z = embeddings_of(self.engine, tasks)
        adapters = OnDemand(z, np.full(tasks, FIRST_HYPERNETWORK), {FIRST_HYPERNETWORK: self.engine.hypernetwork})
        tries = [self.engine.trie(WORDS[task % len(WORDS)]) for task in range(tasks)]
        rows = draws(kind, tasks, len(self.ids))
        return lambda: mixed_log_probabilities(self.engine, self.ids, adapters, tries, next(rows))

    def one_task(self) -> Step:
        """Adapters of one task, made before."""
        import torch

        from onboard.model.batched import mixed_log_probabilities

        with torch.inference_mode():
            adapters = self.engine.hypernetwork(torch.from_numpy(embeddings_of(self.engine, 1)).to(self.engine.device))
        tries, rows = [self.engine.trie(WORDS[0])], np.zeros(len(self.ids), dtype=np.int64)
        return lambda: mixed_log_probabilities(self.engine, self.ids, adapters, tries, rows)

    def peft(self, model: Any, tasks: int, kind: str) -> Step:
        """LoRA of T tasks, mixed by their names."""
        rows = draws(kind, tasks, len(self.ids))
        score = self._scoring(model.get_base_model())

        def step() -> Any:
            with model.base_model._enable_peft_forward_hooks(adapter_names=names_of(next(rows))):  # as its `forward`
                return score()

        return step

    def recent(self, recent: RecentLoras, model: Any, tasks: int, kind: str) -> Step:
        """LoRA of T tasks of which a server keeps some: a part of the batch for each set that fits."""
        rows = draws(kind, tasks, len(self.ids))
        score = self._scoring(model.get_base_model())

        def step() -> None:
            drawn = next(rows)
            for part in recent.parts(drawn):
                names = names_of(recent.slots_of(drawn[part]))
                with model.base_model._enable_peft_forward_hooks(adapter_names=names):
                    score(part)

        return step

    def merged(self) -> Step:
        """LoRA of one task as a part of the weights."""
        return self._scoring(lora(self.fresh(), 1).merge_and_unload())

    def base(self) -> Step:
        """The T5 alone."""
        return self._scoring(self.fresh())

    def _scoring(self, backbone: Any) -> Callable[..., Any]:
        """One encoder and one decoder pass of a T5, and the label words' log-probabilities, of all rows or a part."""
        import torch

        from onboard.model.encoding import pad
        from onboard.model.scoring import PackedTries, label_log_probabilities

        start = backbone.config.decoder_start_token_id
        tries = PackedTries.pack([self.engine.trie(WORDS[0])], start, self.engine.device)
        input_ids, _ = pad(self.ids, self.engine.encoder.pad_id)
        input_ids = input_ids.to(self.engine.device)

        def step(part: np.ndarray | slice = slice(None)) -> Any:
            with torch.inference_mode():
                states = backbone.encoder(input_ids=input_ids[part]).last_hidden_state
                return label_log_probabilities(backbone, states, None, tries, None).cpu()

        return step


def embeddings_of(engine: Any, tasks: int) -> np.ndarray:
    """Random ones (T, t) float32."""
    size = engine.hypernetwork.sizes["task_embedding_size"]
    return np.random.default_rng(0).standard_normal((tasks, size)).astype(np.float32)
