"""Later hypernetworks: found by their version, kept while they are used, verified, never mistaken for one another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sqlalchemy import update
from support.published import add_version, embedding_of
from support.refusals import refused
from support.tuned_heads import perturbed, tuned_head

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.task import HypernetworkVersion
from onboard.errors import DamagedError
from onboard.hypernetworks import engines as heads
from onboard.hypernetworks.engines import engine_at, hypernetwork_at, store_hypernetwork
from onboard.hypernetworks.register import register_base
from onboard.model.weights import hypernetwork_digest
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services, open_services
from onboard.registry.tables import HypernetworkRow
from onboard.settings import Settings
from onboard.storage.cache import Cache


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "loaded_hypernetworks", Cache(2))


def stored(services: Services, version: HypernetworkVersion) -> Path:
    name = version.digest.removeprefix("sha256:")
    return services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name


def test_a_version_is_frozen_exact_and_the_same_object_for_as_long_as_it_is_kept(
    tiny_services: Services, tiny_base: Base
) -> None:
    first = load_engine(tiny_base, "cpu").hypernetwork
    tuned_head(tiny_services, tiny_base, seed=7)
    second = hypernetwork_at(tiny_services, tiny_base, 2, "cpu")
    assert hypernetwork_digest(second) == hypernetwork_digest(perturbed(first, seed=7))
    assert hypernetwork_digest(second) != hypernetwork_digest(first)
    assert not any(parameter.requires_grad for parameter in second.parameters())
    assert hypernetwork_at(tiny_services, tiny_base, 2, "cpu") is second
    engine = engine_at(tiny_services, tiny_base, 2)
    assert engine.hypernetwork is second
    assert engine.backbone is load_engine(tiny_base, "cpu").backbone


def test_the_first_version_is_the_bases_own_engine(tiny_services: Services, tiny_base: Base) -> None:
    assert engine_at(tiny_services, tiny_base, 1) is load_engine(tiny_base, "cpu")
    assert hypernetwork_at(tiny_services, tiny_base, 1, "cpu") is load_engine(tiny_base, "cpu").hypernetwork


def test_what_was_loaded_for_a_prediction_can_be_trained_with(
    tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned_head(tiny_services, tiny_base)
    monkeypatch.setattr("onboard.bases.load.loaded_engines", Cache(1))
    with torch.inference_mode():
        engines = [engine_at(tiny_services, tiny_base, version) for version in (1, 2)]
    for engine in engines:
        z = torch.from_numpy(embedding_of(1))[None].requires_grad_(True)
        ids, trie = engine.encoder.encode([("a good film", None)]), engine.trie(["good", "bad"])
        engine.log_probabilities(ids, z, [trie])[0, 0].backward()
        assert z.grad is not None
        assert z.grad.abs().sum() > 0


def test_only_the_versions_that_were_used_last_stay_in_memory(tiny_services: Services, tiny_base: Base) -> None:
    for seed in range(3):
        tuned_head(tiny_services, tiny_base, seed=seed)
    second, third, _ = (hypernetwork_at(tiny_services, tiny_base, version, "cpu") for version in (2, 3, 4))
    assert hypernetwork_at(tiny_services, tiny_base, 3, "cpu") is third
    again = hypernetwork_at(tiny_services, tiny_base, 2, "cpu")
    assert again is not second
    assert hypernetwork_digest(again) == hypernetwork_digest(second)


def test_version_2_of_one_home_is_not_version_2_of_another(
    tiny_services: Services, tiny_base: Base, tmp_path: Path
) -> None:
    tuned_head(tiny_services, tiny_base, seed=1)
    other = open_services(Settings(home=tmp_path / "other", base=str(tiny_base.folder), device="cpu"))
    try:
        register_base(other, tiny_base)
        tuned_head(other, tiny_base, seed=2)
        one, two = (hypernetwork_at(home, tiny_base, 2, "cpu") for home in (tiny_services, other))
        assert hypernetwork_digest(one) != hypernetwork_digest(two)
    finally:
        other.close()


def test_a_version_that_the_base_has_not_got_is_a_mismatch(tiny_services: Services, tiny_base: Base) -> None:
    with refused("hypernetwork-version-missing", version=2):
        engine_at(tiny_services, tiny_base, 2)


@pytest.mark.parametrize("gone", [False, True])
def test_bytes_that_are_damaged_or_gone_are_never_used(tiny_services: Services, tiny_base: Base, gone: bool) -> None:
    path = stored(tiny_services, tuned_head(tiny_services, tiny_base))
    content = path.read_bytes()
    path.unlink() if gone else path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedError):
        hypernetwork_at(tiny_services, tiny_base, 2, "cpu")
    path.write_bytes(content)
    assert hypernetwork_at(tiny_services, tiny_base, 2, "cpu").sizes


def collect(services: Services, version: int) -> None:
    with services.database.write() as session:
        statement = update(HypernetworkRow).where(HypernetworkRow.version == version)
        session.execute(statement.values(artifact=None, collected_at=1.0))


def test_a_collected_version_is_told_as_such_and_nothing_new_is_pinned_to_it(
    tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base)
    collect(tiny_services, 2)
    with refused("hypernetwork-collected-needed", version=2):
        hypernetwork_at(tiny_services, tiny_base, 2, "cpu")
    for pins in ({"hypernetwork_version": 2}, {"hypernetwork_version": 1, "learned_under": 2}):
        with refused("hypernetwork-not-usable", version=2):
            add_version(tiny_services, tiny_base, "late", ("a", "b"), ("good", "bad"), **pins)


def test_a_stored_version_has_the_digest_of_its_file_whatever_is_known_of_it(
    tiny_services: Services, tiny_base: Base
) -> None:
    moved = perturbed(load_engine(tiny_base, "cpu").hypernetwork)
    draft = store_hypernetwork(tiny_services, tiny_base, moved, guard={"verdict": "accepted"})
    assert draft.digest == draft.artifact
    assert draft.metrics == {"guard": {"verdict": "accepted"}}
    with tiny_services.database.write() as session:
        added = BaseRepository(session).advance(draft, expected_head=1)
    assert (added.version, added.parent) == (2, 1)
    assert tiny_services.read(draft.digest)


def test_carried_numbers_keep_the_version_that_they_were_learned_under(
    tiny_services: Services, tiny_base: Base
) -> None:
    for seed in range(2):
        tuned_head(tiny_services, tiny_base, seed=seed)
    z = embedding_of(1)
    learned = add_version(tiny_services, tiny_base, "mood", ("a", "b"), ("good", "bad"), z=z, hypernetwork_version=2)
    carried = add_version(
        tiny_services, tiny_base, "mood", ("a", "b"), ("good", "bad"), z=z, kind="carried",
        hypernetwork_version=3, learned_under=learned.origin, parent=learned.reference,
    )  # fmt: skip
    assert (learned.origin, carried.origin, carried.embedding_digest) == (2, 2, learned.embedding_digest)
    assert torch.equal(
        next(hypernetwork_at(tiny_services, tiny_base, carried.origin, "cpu").parameters()),
        next(hypernetwork_at(tiny_services, tiny_base, 2, "cpu").parameters()),
    )
