"""Several processes on one training, as `accelerate launch` or `torchrun` start them: data-parallel, no wrapper.

Every process draws the same batch of the same task and takes every n-th row of it. Gradients are summed in one
all-reduce of those that exist; DistributedDataParallel expects every parameter to get one, and all embeddings but one
get none. The loss and whether anybody was told to stop travel in the same buffer, so all processes stop together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import distributed

from onboard.errors import UnavailableError


@dataclass(frozen=True)
class Processes:
    """This process among its like.

    Args:
        rank: number of this process; 0 validates, saves and speaks.
        count: how many there are.
        device: where this one computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the one that validates, saves and speaks."""
        return self.rank == 0

    def exchange(self, parameters: Sequence[torch.nn.Parameter], loss: torch.Tensor, stop: bool) -> tuple[float, bool]:
        """Sum gradients and loss over all processes; tells the loss, and whether any of them was told to stop.

        Args:
            parameters: all that is trained; those without a gradient have none in any process.
            loss: this process's share of the mean over the whole batch.
            stop: whether this process was told to stop.
        """
        if self.count == 1:
            return float(loss.detach()), stop
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        message = torch.stack([loss.detach().float(), torch.tensor(float(stop), device=loss.device)])
        buffer = torch.cat([message, *(gradient.flatten() for gradient in gradients)])
        distributed.all_reduce(buffer)
        parts = torch.split(buffer[2:], [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        return float(buffer[0]), bool(buffer[1] > 0)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.count > 1:
            distributed.barrier()


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """The processes that a launcher started together with this one; alone without a launcher.

    Args:
        device: for a process that is alone; of several, each takes the CUDA device of its local rank, or the CPU.

    Raises:
        UnavailableError: the others cannot be reached.
    """
    if not _launched():
        yield Processes(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", distributed.get_node_local_rank())
        torch.cuda.set_device(device)
    try:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    except (ValueError, RuntimeError) as error:
        raise UnavailableError("training-processes-unreachable", reason=error) from error
    try:
        yield Processes(distributed.get_rank(), distributed.get_world_size(), device)
    finally:
        distributed.destroy_process_group()


def leave(code: int) -> NoReturn:
    """End this process; one of several without Python's own ending.

    A thread of the process group may free its last tensor a moment after all is done. Where the interpreter is ending
    by then, that aborts the process, and the launcher takes a training that was saved for a failed one.
    """
    if not _launched():
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _launched() -> bool:
    return distributed.is_available() and distributed.is_torchelastic_launched()
