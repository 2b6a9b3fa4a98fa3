"""The interface of the model for all stages: label log-probabilities with task embeddings, and features of texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from onboard.model.attach import attach
from onboard.model.backbone import freeze
from onboard.model.encoding import TextEncoder, pad
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.readout_features import mean_of, readout_features
from onboard.model.rounding import RoundedProducts, has_bfloat16, rounded_weights
from onboard.model.scoring import LabelTrie, PackedTries, edge_logits, label_log_probabilities
from onboard.model.task_weights import Weights
from onboard.storage.cache import Cache

CACHED_TRIES_BYTES = 64 << 20  # of recent label words; tasks with the same words share a trie
CACHED_PACKS = 512
CACHED_NODES = 1 << 16  # pairs of nodes of the tries in a cached pack: 32 MiB for all packs


class Engine:
    """A frozen backbone with attached adapters, the hypernetwork that generates them, and the text encoder.

    The constructor freezes the backbone and attaches adapters. Training of a base unfreezes `norm_parameters(backbone)`
    afterwards. Callers decide whether to disable gradients.

    Args:
        backbone: a stock T5 from `load_backbone`, on its device.
        hypernetwork: used unless a call names another one; its device and dtype may differ from the backbone's.
        encoder: tokenizes texts and label words.

    Raises:
        ConflictError: the backbone already has adapters.
    """

    def __init__(self, backbone: Any, hypernetwork: Hypernetwork, encoder: TextEncoder) -> None:
        self.attachment = attach(backbone)
        self.backbone = freeze(backbone)
        self.hypernetwork = hypernetwork
        self.encoder = encoder
        self._products: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._tries = Cache[tuple[str, ...], LabelTrie](CACHED_TRIES_BYTES, weigh=lambda trie: trie.kept_bytes)
        self._packed = lru_cache(CACHED_PACKS)(self._pack)

    @property
    def device(self) -> torch.device:
        """The backbone's device."""
        device: torch.device = self.backbone.device
        return device

    def under(self, hypernetwork: Hypernetwork) -> Engine:
        """Return an engine with another hypernetwork that shares backbone, attachment, encoder and packed tries.

        Moving one of these engines moves the backbone for all of them.
        """
        sibling = copy.copy(self)
        sibling.hypernetwork = hypernetwork
        return sibling

    def rounded(self) -> Engine:
        """Return an engine that multiplies backbone matrices in bfloat16, if this CPU benefits; otherwise itself.

        Use it to compare or train, not to predict or evaluate. The matrices are rounded at this moment.
        """
        if self._products is not nullcontext or self.device.type != "cpu" or not has_bfloat16():
            return self
        sibling = copy.copy(self)
        sibling._products = partial(RoundedProducts, rounded_weights(self.backbone))
        return sibling

    def to(self, device: torch.device | str) -> Engine:
        """Move backbone and hypernetwork."""
        self.backbone.to(device)
        self.hypernetwork.to(device)
        self._packed.cache_clear()
        return self

    def trie(self, words: Sequence[str]) -> LabelTrie:
        """Return the trie of label words; the same object for the same words while it is cached."""
        return self._tries.get(tuple(words), lambda: self._built(words))

    @torch.inference_mode(False)  # as for `_pack`
    def _built(self, words: Sequence[str]) -> LabelTrie:
        return LabelTrie.build([self.encoder.label_ids(word) for word in words])

    def log_probabilities(
        self,
        ids: Sequence[Sequence[int]],
        z: Tensor,
        tries: Sequence[LabelTrie],
        rows: Tensor | None = None,
        *,
        hypernetwork: Hypernetwork | None = None,
    ) -> Tensor:
        """Return the log-probability of every label for every row; differentiable in z and in the hypernetwork.

        Args:
            ids: token ids of B texts, from `encoder.encode`.
            z: (T, t), the task embeddings.
            tries: one per task.
            rows: (B,) LongTensor, the task of each row; may be None if T is 1.
            hypernetwork: replaces the engine's hypernetwork for this call.

        Returns:
            (B, K) float32, K the largest number of labels; −inf beyond a row's labels.
        """
        active = self.hypernetwork if hypernetwork is None else hypernetwork
        generated = active(z.to(next(active.parameters()).device))
        return self.score(ids, generated, tries, rows)

    def score(
        self,
        ids: Sequence[Sequence[int]],
        weights: Weights,
        tries: Sequence[LabelTrie],
        rows: Tensor | None = None,
    ) -> Tensor:
        """Like `log_probabilities`, with adapters generated before, or with weights of any methods.

        Takes one encoder pass and one decoder pass.

        Raises:
            ValueError: the numbers of tasks, tries and rows do not match.
        """
        return self._decoded(label_log_probabilities, ids, weights, tries, rows)

    def edge_logits(
        self,
        ids: Sequence[Sequence[int]],
        weights: Weights,
        tries: Sequence[LabelTrie],
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of all edges of the rows' tries (B, E), for `log_probabilities_among`.

        Arguments as in `score`.
        """
        return self._decoded(edge_logits, ids, weights, tries, rows)

    def _decoded(
        self,
        read: Callable[[Any, Tensor, Tensor | None, PackedTries, Tensor | None, Tensor | None], Tensor],
        ids: Sequence[Sequence[int]],
        weights: Weights,
        tries: Sequence[LabelTrie],
        rows: Tensor | None,
    ) -> Tensor:
        if len(tries) != weights.tasks:
            raise ValueError(f"{weights.tasks} tasks, but {len(tries)} label tries")
        if weights.tasks == 1:
            rows = None
        elif rows is None or len(rows) != len(ids):
            raise ValueError(f"with {weights.tasks} tasks each of the {len(ids)} rows needs its task")
        else:
            rows = rows.to(self.device)
        input_ids, mask = self._batch(ids)
        mixes = isinstance(weights, GeneratedAdapters) or weights.mixes
        products = self._products if mixes else nullcontext  # only the backbone's matrices are rounded
        with self.attachment.using(weights, rows), products():
            states = self.backbone.encoder(input_ids=input_ids, attention_mask=mask).last_hidden_state  # (B, P + S, h)
            return read(self.backbone, states, mask, self._pack_of(tries), rows, self.attachment.head_bias())

    def bare_log_probabilities(self, ids: Sequence[Sequence[int]], tries: Sequence[LabelTrie]) -> Tensor:
        """Like `log_probabilities`, for one task with the bare backbone; differentiable in the backbone.

        Returns:
            (B, K) float32.
        """
        input_ids, mask = self._batch(ids)
        with self.attachment.bare():
            states = self.backbone.encoder(input_ids=input_ids, attention_mask=mask).last_hidden_state  # (B, S, h)
            return label_log_probabilities(self.backbone, states, mask, self._pack_of(tries), None)

    def encode_features(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Return the mean encoder state of each text without adapters: (B, h) float32."""
        input_ids, mask = self._batch(ids)
        with self.attachment.bare():
            states = self.backbone.encoder(input_ids=input_ids, attention_mask=mask).last_hidden_state.float()
        return mean_of(states, torch.ones_like(input_ids) if mask is None else mask)

    def readout_features(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Return the readout features of each text without adapters, see `onboard.model.readout_features` (B, 6h)
        float32.
        """
        input_ids, mask = self._batch(ids)
        with self.attachment.bare():
            return readout_features(self.backbone.encoder, input_ids, mask, self.encoder.separator, self.encoder.eos_id)

    def _batch(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
        """Return input_ids (B, S) and attention_mask (B, S), None without padding."""
        input_ids, mask = pad(ids, self.encoder.pad_id)
        padded = min(map(len, ids)) < input_ids.shape[1]
        return input_ids.to(self.device), mask.to(self.device) if padded else None

    def _pack_of(self, tries: Sequence[LabelTrie]) -> PackedTries:
        """Pack tries and cache the pack, except combinations of many large ones, which rarely repeat."""
        large = len(tries) > 1 and len(tries) * max(len(trie.tokens) for trie in tries) ** 2 > CACHED_NODES
        return self._pack(tuple(tries)) if large else self._packed(tuple(tries))

    @torch.inference_mode(False)  # packs made in inference mode could not be used in training
    def _pack(self, tries: tuple[LabelTrie, ...]) -> PackedTries:
        return PackedTries.pack(tries, self.backbone.config.decoder_start_token_id, self.device)
