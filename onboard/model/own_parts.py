"""Hooks for task-specific norms, biases and prompts; each row uses those of its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from onboard.model.t5_parts import HEAD, biased_of, norms_of
from onboard.model.task_weights import OwnParts

_ARGUMENTS = ("input_ids", "attention_mask", "encoder_hidden_states", "encoder_attention_mask", "inputs_embeds")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a batch's rows, or of one task (1 in front), right-aligned to the text.

    Args:
        vectors: (B, P, h), zeros before a shorter prompt.
        mask: (B, P) LongTensor, 0 where there is no prompt; None if all have length P.
    """

    vectors: Tensor
    mask: Tensor | None

    def before(self, embedded: Tensor) -> Tensor:
        """Prepend the prompts: (B, S, h) → (B, P + S, h)."""
        front = self.vectors.expand(embedded.shape[0], -1, -1).to(embedded.dtype)
        return torch.cat([front, embedded], dim=1)

    def extended(self, mask: Tensor | None, tokens: int) -> Tensor | None:
        """Extend the attention mask of S tokens (B, S) to P + S tokens; None if nothing is padded."""
        if mask is None and self.mask is None:
            return None
        batch = len(self.vectors) if mask is None else len(mask)
        device, length = self.vectors.device, self.vectors.shape[1]
        text = torch.ones(batch, tokens, dtype=torch.long, device=device) if mask is None else mask
        front = text.new_ones(1, length) if self.mask is None else self.mask.to(text.dtype)
        return torch.cat([front.expand(batch, -1), text], dim=1)


@dataclass(frozen=True, slots=True)
class StackedParts:
    """The parts of T tasks that the hooks apply in addition to adapters, by module name.

    Args:
        rows: (B,) LongTensor, the task of each row; None: one task.
        norms: (T, h), replaces the weight of a T5 norm.
        biases: (T, out), added to a module's output.
        prompts: of the rows.
    """

    rows: Tensor | None
    norms: Mapping[str, Tensor]
    biases: Mapping[str, Tensor]
    prompts: Prompts | None

    @classmethod
    def of(cls, backbone: nn.Module, own: Sequence[OwnParts], rows: Tensor | None) -> StackedParts | None:
        """Stack the parts of T tasks; None if no task has any. Differentiable."""
        if not any(part.norms is not None or part.biases is not None or part.prompt is not None for part in own):
            return None
        reference = next(backbone.parameters())
        return cls(
            rows, _norms(backbone, own, reference), _biases(backbone, own, reference), _prompts(own, rows, reference)
        )

    def row_wise(self, per_task: Tensor) -> Tensor:
        """Select per row: (T, n) → (B, 1, n), or (n,) for one task."""
        return per_task[0] if self.rows is None else per_task.index_select(0, self.rows)[:, None]

    def head_bias(self) -> Tensor | None:
        """Return the bias of the logits (T, vocabulary); None if no task has one."""
        return self.biases.get(HEAD)


def _norms(backbone: nn.Module, own: Sequence[OwnParts], like: Tensor) -> dict[str, Tensor]:
    if all(part.norms is None for part in own):
        return {}
    modules = norms_of(backbone)
    shared = torch.stack([module.get_parameter("weight") for module in modules.values()])  # (5L + 2, h)
    of_tasks = torch.stack([shared if part.norms is None else part.norms.to(like) for part in own])  # (T, 5L + 2, h)
    return dict(zip(modules, of_tasks.unbind(1), strict=True))


def _biases(backbone: nn.Module, own: Sequence[OwnParts], like: Tensor) -> dict[str, Tensor]:
    if all(part.biases is None for part in own):
        return {}
    sizes = biased_of(backbone)
    none = torch.zeros(sum(sizes.values()), device=like.device, dtype=like.dtype)
    of_tasks = torch.stack([none if part.biases is None else part.biases.to(like) for part in own])  # (T, sum)
    return dict(zip(sizes, torch.split(of_tasks, list(sizes.values()), dim=1), strict=True))


def _prompts(own: Sequence[OwnParts], rows: Tensor | None, like: Tensor) -> Prompts | None:
    lengths = [0 if part.prompt is None else len(part.prompt) for part in own]
    longest = max(lengths)
    if not longest:
        return None
    vectors = torch.stack(
        [
            torch.zeros(longest, like.shape[-1], device=like.device, dtype=like.dtype)
            if part.prompt is None
            else nn.functional.pad(part.prompt.to(like), (0, 0, longest - len(part.prompt), 0))
            for part in own
        ]
    )  # (T, P, h)
    mask = None
    if min(lengths) < longest:
        places = torch.arange(longest, device=like.device)
        mask = (places >= longest - torch.tensor(lengths, device=like.device)[:, None]).long()  # (T, P)
    if rows is None:
        return Prompts(vectors, mask)
    return Prompts(vectors.index_select(0, rows), None if mask is None else mask.index_select(0, rows))


Current = Callable[[], StackedParts | None]


class OwnHook:
    """Forward hook of a norm or linear layer: replaces the norm's weight by the task's, then adds the task's bias."""

    __slots__ = ("current", "name")

    def __init__(self, current: Current, name: str) -> None:
        self.current, self.name = current, name

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        """Return the changed output (B, S, n), or None to keep it."""
        beside = self.current()
        if beside is None:
            return None
        weight, bias = beside.norms.get(self.name), beside.biases.get(self.name)
        if weight is not None:
            output = beside.row_wise(weight) * _standard(args[0], module).to(output.dtype)
        return output if bias is None else output + beside.row_wise(bias)


def _standard(x: Tensor, norm: Any) -> Tensor:
    """Return x / √(mean(x²) + ε), in float32 as in T5, before the norm's weight."""
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)


class PromptHook:
    """Forward pre-hook of a stack: prepends prompts to the encoder's input, and extends its mask in both stacks."""

    __slots__ = ("current",)

    def __init__(self, current: Current) -> None:
        self.current = current

    def __call__(self, module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return changed arguments for the stack, or None to keep them."""
        beside = self.current()
        prompts = None if beside is None else beside.prompts
        if prompts is None:
            return None
        arguments = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        if module.is_decoder:
            states = arguments["encoder_hidden_states"]
            tokens = states.shape[1] - prompts.vectors.shape[1]
            arguments["encoder_attention_mask"] = prompts.extended(arguments.get("encoder_attention_mask"), tokens)
            return (), arguments
        ids, embedded = arguments.pop("input_ids", None), arguments.get("inputs_embeds")
        embedded = module.embed_tokens(ids) if embedded is None else embedded  # (B, S, h)
        arguments["inputs_embeds"] = prompts.before(embedded)
        arguments["attention_mask"] = prompts.extended(arguments.get("attention_mask"), embedded.shape[1])
        return (), arguments


def register(backbone: Any, current: Current) -> list[Any]:
    """Register the hooks on the backbone and return their handles."""
    named = dict(backbone.named_modules())
    places = [*dict.fromkeys([*norms_of(backbone), *biased_of(backbone)])]
    handles = [named[name].register_forward_hook(OwnHook(current, name)) for name in places]
    stacks = (backbone.encoder, backbone.decoder)
    return handles + [stack.register_forward_pre_hook(PromptHook(current), with_kwargs=True) for stack in stacks]
