"""Rank classification over a closed set of label words, with one decoder pass over the trie of all labels.

The log-probability of a label is the sum, over the branches on its path, of the log-softmax restricted to the children
of that branch. Renormalizing locally makes the labels' probabilities sum to one and gives no advantage to labels with
predictable tails. Nodes without a branch below are not decoded: two labels with different first tokens need one decoder
position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)

from onboard.errors import InputError
from onboard.model.backbone import output_scale

_BYTES_AROUND = 512  # PyTorch's overhead per tensor
Prefix = tuple[int, ...]  # a node of a trie: the tokens that lead to it
Edge = tuple[Prefix, int]  # its start node and its token
ROOT_TOKEN = -1  # replaced by the backbone's decoder start token


@dataclass(frozen=True, slots=True, eq=False)
class LabelTrie:
    """The label words of one task as a tree of tokens; N decoded nodes, E edges from M branches, K labels.

    A branch is a node with several children (the root counts as one if there is a single label).
    """

    tokens: Tensor  # (N,) the token of each node; ROOT_TOKEN at index 0
    depth: Tensor  # (N,) number of tokens between root and node
    visible: Tensor  # (N, N) bool, [i, j]: j is i or an ancestor of i
    edge_node: Tensor  # (E,) the branch at which the edge starts
    edge_token: Tensor  # (E,) the token of the edge
    branches: Tensor  # (M, C) the edges of each branch, padded with E
    paths: Tensor  # (K, P) the edges of each label as indices into the flattened branches, padded with M * C

    @property
    def labels(self) -> int:
        """K, the number of labels."""
        return self.paths.shape[0]

    @property
    def kept_bytes(self) -> int:
        """Approximate size in memory."""
        tensors = [getattr(self, field.name) for field in fields(self)]
        return sum(tensor.nbytes + _BYTES_AROUND for tensor in tensors)

    @classmethod
    def build(cls, sequences: Sequence[Sequence[int]]) -> LabelTrie:
        """Build the trie of the labels' token ids, in order, each ending in end-of-sequence.

        Raises:
            InputError: there is no label, or one is empty, equal to another, or a prefix of another.
        """
        _check(sequences)
        children = _children(sequences)
        branching = _shortest_first(prefix for prefix, tokens in children.items() if len(tokens) > 1) or [()]
        nodes = _shortest_first({branch[:end] for branch in branching for end in range(len(branch) + 1)})
        node_index = {node: index for index, node in enumerate(nodes)}
        edges = [(branch, token) for branch in branching for token in children[branch]]
        edge_index = {edge: index for index, edge in enumerate(edges)}
        branches = _rectangle([[edge_index[b, token] for token in children[b]] for b in branching], len(edges))
        width = branches.shape[1]
        cells = {(b, token): row * width + c for row, b in enumerate(branching) for c, token in enumerate(children[b])}
        paths = [[cells[edge] for edge in _edges(sequence) if edge in cells] for sequence in sequences]
        return cls(
            tokens=torch.tensor([node[-1] if node else ROOT_TOKEN for node in nodes]),
            depth=torch.tensor([len(node) for node in nodes]),
            visible=torch.tensor([[node[: len(ancestor)] == ancestor for ancestor in nodes] for node in nodes]),
            edge_node=torch.tensor([node_index[branch] for branch, _ in edges]),
            edge_token=torch.tensor([token for _, token in edges]),
            branches=branches,
            paths=_rectangle(paths, branches.numel()),
        )


def _edges(sequence: Sequence[int]) -> Iterator[Edge]:
    """Yield the edges of one label from the root."""
    for end, token in enumerate(sequence):
        yield tuple(sequence[:end]), token


def _children(sequences: Sequence[Sequence[int]]) -> dict[Prefix, list[int]]:
    """Return the tokens that follow each prefix, in the order of the labels."""
    children: dict[Prefix, dict[int, None]] = {}
    for sequence in sequences:
        for prefix, token in _edges(sequence):
            children.setdefault(prefix, {})[token] = None
    return {prefix: list(tokens) for prefix, tokens in children.items()}


def _shortest_first(prefixes: Iterable[Prefix]) -> list[Prefix]:
    return sorted(prefixes, key=lambda prefix: (len(prefix), prefix))


def _rectangle(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Return rows of different lengths as one padded tensor."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _check(sequences: Sequence[Sequence[int]]) -> None:
    if not sequences or not all(sequences):
        raise InputError("label-without-tokens")
    ordered = sorted(tuple(sequence) for sequence in sequences)
    for shorter, longer in pairwise(ordered):
        if longer[: len(shorter)] == shorter:
            raise InputError("labels-share-tokens")


@dataclass(frozen=True, slots=True, eq=False)
class PackedTries:
    """The tries of T tasks padded to common sizes, on one device, with the backbone's start token."""

    tokens: Tensor  # (T, N)
    depth: Tensor  # (T, N)
    visible: Tensor  # (T, N, N)
    edge_node: Tensor  # (T, E)
    edge_token: Tensor  # (T, E)
    branches: Tensor  # (T, M, C), padded with E
    paths: Tensor  # (T, K, P), padded with M * C
    missing: Tensor | None  # (T, K) bool, True beyond a task's labels; None if all have K labels

    @classmethod
    def pack(cls, tries: Sequence[LabelTrie], start_token: int, device: torch.device) -> PackedTries:
        """Pad the tries of T tasks to common sizes."""
        nodes = max(len(trie.tokens) for trie in tries)
        edges = max(len(trie.edge_token) for trie in tries)
        width = max(trie.branches.shape[1] for trie in tries)
        count = max(trie.branches.shape[0] for trie in tries)
        labels = max(trie.labels for trie in tries)
        longest = max(trie.paths.shape[1] for trie in tries)
        visible = torch.eye(nodes, dtype=torch.bool).repeat(len(tries), 1, 1)
        branches, paths = [], []
        for index, trie in enumerate(tries):
            size = len(trie.tokens)
            visible[index, :size, :size] = trie.visible
            branches.append(
                _padded(trie.branches.masked_fill(trie.branches == len(trie.edge_token), edges), edges, count, width)
            )
            row, column = trie.paths // trie.branches.shape[1], trie.paths % trie.branches.shape[1]
            moved = (row * width + column).masked_fill(trie.paths == trie.branches.numel(), count * width)
            paths.append(_padded(moved, count * width, labels, longest))
        missing = torch.tensor([[k >= trie.labels for k in range(labels)] for trie in tries])
        tokens = torch.stack([_padded(trie.tokens, ROOT_TOKEN, nodes) for trie in tries])
        return cls(
            tokens=tokens.masked_fill(tokens == ROOT_TOKEN, start_token).to(device),
            depth=torch.stack([_padded(trie.depth, 0, nodes) for trie in tries]).to(device),
            visible=visible.to(device),
            edge_node=torch.stack([_padded(trie.edge_node, 0, edges) for trie in tries]).to(device),
            edge_token=torch.stack([_padded(trie.edge_token, 0, edges) for trie in tries]).to(device),
            branches=torch.stack(branches).to(device),
            paths=torch.stack(paths).to(device),
            missing=missing.to(device) if missing.any() else None,
        )


def _padded(tensor: Tensor, value: int, *shape: int) -> Tensor:
    """Return the tensor in the upper left corner of one with this shape, padded with the value."""
    if tuple(tensor.shape) == shape:
        return tensor
    out = torch.full(shape, value)
    out[tuple(slice(size) for size in tensor.shape)] = tensor
    return out


def tree_mask(backbone: Any, tries: PackedTries) -> Tensor | None:
    """Return a mask with which the stock decoder computes a tree packed into one sequence: (T, H, N, N), None if N is
    1.

    Off the ancestors' paths it is the dtype's minimum. On them it is bias(difference of depth) − bias(difference of
    index), because T5 adds the relative-position bias of the indices itself. The stock code passes a 4-D mask to the
    attention, which adds it.
    """
    nodes = tries.tokens.shape[1]
    if nodes == 1:
        return None
    attention = backbone.decoder.block[0].layer[0].SelfAttention
    by_index = attention.compute_bias(nodes, nodes, device=tries.depth.device)  # (1, H, N, N)
    by_depth = by_index[0][:, tries.depth[:, :, None], tries.depth[:, None, :]].transpose(0, 1)  # (T, H, N, N)
    hidden = ~tries.visible[:, None]  # (T, 1, N, N)
    mask: Tensor = (by_depth - by_index).masked_fill(hidden, torch.finfo(by_index.dtype).min)
    return mask


def label_log_probabilities(
    backbone: Any,
    states: Tensor,
    attention_mask: Tensor | None,
    tries: PackedTries,
    rows: Tensor | None,
    head_bias: Tensor | None = None,
) -> Tensor:
    """Return log-probabilities of every row's labels from one decoder pass.

    Args:
        as `edge_logits`.

    Returns:
        (B, K) float32; −inf beyond a row's labels. A row's probabilities sum to one.
    """
    logits = edge_logits(backbone, states, attention_mask, tries, rows, head_bias)
    batch = logits.shape[0]  # not len(), which would be a constant when the model is traced
    branches, paths = _of_rows(tries.branches, batch, rows), _of_rows(tries.paths, batch, rows)
    missing = None if tries.missing is None else _of_rows(tries.missing, batch, rows)
    return _renormalise(logits, branches, paths, missing)


def edge_logits(
    backbone: Any,
    states: Tensor,
    attention_mask: Tensor | None,
    tries: PackedTries,
    rows: Tensor | None,
    head_bias: Tensor | None = None,
) -> Tensor:
    """Return the logit of every edge of every row's trie from one decoder pass. Any choice among the labels follows
    from it.

    Args:
        backbone: the stock model; active adapters apply.
        states: (B, S, h), the encoder's output.
        attention_mask: (B, S) of the source, None without padding.
        tries: the label tries of T tasks.
        rows: (B,) LongTensor, the task of each row; None if T is 1.
        head_bias: (T, vocabulary), added to the logits, or None.

    Returns:
        (B, E) float32; values beyond a row's edges are undefined.
    """
    batch, mask = states.shape[0], tree_mask(backbone, tries)
    hidden = backbone.decoder(
        input_ids=_of_rows(tries.tokens, batch, rows),
        attention_mask=None if mask is None else _of_rows(mask, batch, rows),
        encoder_hidden_states=states,
        encoder_attention_mask=attention_mask,
        use_cache=False,
    ).last_hidden_state  # (B, N, h)
    head = _of_rows(backbone.lm_head.weight[tries.edge_token], batch, rows)  # (B, E, h)
    origin = _of_rows(tries.edge_node, batch, rows)[..., None].expand(-1, -1, hidden.shape[-1])
    scaled = hidden.gather(1, origin).float() * output_scale(backbone)  # (B, E, h)
    logits: Tensor = (scaled * head.float()).sum(-1)  # (B, E)
    if head_bias is None:
        return logits
    return logits + _of_rows(head_bias.gather(1, tries.edge_token), batch, rows).float()


def log_probabilities_among(logits: Tensor, trie: LabelTrie, labels: Sequence[int]) -> Tensor:
    """Return log-probabilities of some of a trie's labels, equal to those of a trie with only these labels.

    Args:
        logits: (B, E) of the trie's edges, from `edge_logits`.
        trie: on the CPU, like the logits.
        labels: K' indices into the trie's labels.

    Returns:
        (B, K') float32. A row's probabilities sum to one.
    """
    paths = trie.paths[list(labels)]  # (K', P)
    used = torch.unique(F.pad(trie.branches.flatten(), (0, 1), value=len(trie.edge_token))[paths])
    lowest = torch.finfo(logits.dtype).min / 2
    among = torch.full((len(logits), len(trie.edge_token) + 1), lowest)
    among[:, used] = F.pad(logits[:, : len(trie.edge_token)], (0, 1), value=lowest)[:, used]
    rows = len(logits)
    return _renormalise(among[:, :-1], trie.branches.expand(rows, -1, -1), paths.expand(rows, -1, -1), None)


def _of_rows(per_task: Tensor, batch: int, rows: Tensor | None) -> Tensor:
    """Expand (T, ...) to (B, ...)."""
    return per_task.expand(batch, *per_task.shape[1:]) if rows is None else per_task.index_select(0, rows)


def _renormalise(logits: Tensor, branches: Tensor, paths: Tensor, missing: Tensor | None) -> Tensor:
    """Edge logits (B, E) → log-softmax within each branch (B, M, C) → sums along the labels' paths (B, K)."""
    batch = logits.shape[0]
    lowest = torch.finfo(logits.dtype).min / 2  # finite, so that a branch of padding does not become NaN
    grouped = F.pad(logits, (0, 1), value=lowest).gather(1, branches.flatten(1)).view(branches.shape)  # (B, M, C)
    steps = F.pad(grouped.log_softmax(-1).view(batch, -1), (0, 1))  # (B, M * C + 1), 0 for padding
    totals = steps.gather(1, paths.flatten(1)).view(paths.shape).sum(-1)  # (B, K)
    return totals if missing is None else totals.masked_fill(missing, -torch.inf)
