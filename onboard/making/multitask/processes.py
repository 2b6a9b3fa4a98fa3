"""Data-parallel training in several processes, as `accelerate launch` or `torchrun` start them, without a wrapper.

Every process draws the same batch of the same task and takes every n-th row of it. One all-reduce sums the existing
gradients. DistributedDataParallel expects a gradient for every parameter, but all embeddings except one have none. The
loss and the stop flag are in the same buffer, so all processes stop together.
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
    """This process among those of the run.

    Args:
        rank: number of this process; 0 validates, saves and reports.
        device: where this one computes.
    """

    rank: int
    count: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process validates, saves and reports."""
        return self.rank == 0

    def exchange(self, parameters: Sequence[torch.nn.Parameter], loss: torch.Tensor, stop: bool) -> tuple[float, bool]:
        """Sum gradients and loss over all processes. Returns the loss, and whether any process is to stop.

        Args:
            parameters: all trained parameters; those without a gradient have none in any process.
            loss: this process's share of the mean over the whole batch.
            stop: whether this process received a stop signal.
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
        """Wait until all processes call this."""
        if self.count > 1:
            distributed.barrier()


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """Join the processes that a launcher started; a single process without a launcher.

    Args:
        device: for a single process; otherwise each takes the CUDA device of its local rank, or the CPU.

    Raises:
        UnavailableError: the other processes cannot be reached.
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
    """End this process. With several processes, skip Python's finalization.

    A thread of the process group may free its last tensor shortly after the end. During finalization, that would abort
    the process, and the launcher would report a saved training as failed.
    """
    if not _launched():
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _launched() -> bool:
    return distributed.is_available() and distributed.is_torchelastic_launched()
