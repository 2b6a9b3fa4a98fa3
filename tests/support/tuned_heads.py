"""Later hypernetworks without any tuning: the head's weights moved at random, put into the line as a job would."""

from __future__ import annotations

import copy

import torch

from onboard.bases import Base
from onboard.domain.task import HypernetworkVersion
from onboard.hypernetworks.engines import hypernetwork_at, store_hypernetwork
from onboard.model.hypernetwork import Hypernetwork
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services


def perturbed(hypernetwork: Hypernetwork, scale: float = 0.05, seed: int = 0) -> Hypernetwork:
    """A frozen copy, each of its tensors moved by `scale` times its own norm in a random direction."""
    moved, generator = copy.deepcopy(hypernetwork).requires_grad_(False), torch.Generator().manual_seed(seed)
    for parameter in moved.parameters():
        step = torch.randn(parameter.shape, generator=generator).to(parameter.device)
        parameter += scale * parameter.norm() * step / step.norm()
    return moved


def head_of(services: Services, base: Base) -> int:
    """Which hypernetwork version new tasks are learned under."""
    with services.database.read() as session:
        return BaseRepository(session).get(base.digest).head


def tuned_head(
    services: Services,
    base: Base,
    scale: float = 0.05,
    seed: int = 0,
    *,
    job: str | None = None,
    guard: dict[str, object] | None = None,
    moved_from: int | None = None,
) -> HypernetworkVersion:
    """The base's next hypernetwork version, now its head: the present head, perturbed.

    Args:
        job: that tuned it; its row has to be there.
        guard: the guard's verdict, as the job would leave it.
        moved_from: the version that the job tuned, if the head moved meanwhile.
    """
    head = head_of(services, base)
    moved = perturbed(hypernetwork_at(services, base, head, "cpu"), scale, seed)
    metrics = {} if guard is None else {"guard": guard}
    if moved_from is not None:
        metrics["tuning"] = {"asked": "always", "kept": True, "moved_from": moved_from}
    draft = store_hypernetwork(services, base, moved, job, **metrics)
    with services.database.write() as session:
        return BaseRepository(session).advance(draft, expected_head=head)
