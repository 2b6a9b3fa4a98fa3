"""Fetching a version: whole files, verified, and bundles that predict on their own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.refusals import refused
from support.tiny_base import make_tiny_base
from support.tuned_heads import tuned_head

from onboard.bases import Base, find_base
from onboard.domain.task import EmbeddingVersion
from onboard.errors import ConflictError, DamagedError, NotAllowedError, NotFoundError, PinMismatchError
from onboard.hypernetworks.register import register_base
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.storage.embedding import embedding_digest, unpack_embedding
from onboard.versions.fetch import fetch

INPUTS = [{"task": "mood", "text": text} for text in ("good film", "bad plot", "the film was great")]


def test_a_version_and_a_shipped_source_are_fetched_as_two_files(
    tiny_services: Services, version: EmbeddingVersion, tmp_path: Path
) -> None:
    fetched = fetch(tiny_services, "mood", tmp_path / "new" / "folder")
    assert fetched.version == version
    assert [path.name for path in fetched.files] == ["embedding.safetensors", "card.md"]
    assert embedding_digest(unpack_embedding(fetched.files[0].read_bytes())) == version.embedding_digest
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["card.md", "embedding.safetensors"]
    again = fetch(tiny_services, "mood@v1", tmp_path / "new" / "folder")
    assert again == fetched
    assert fetch(tiny_services, "sst2", tmp_path / "source").version.kind == "source"
    with pytest.raises(NotFoundError):
        fetch(tiny_services, "mood@v2", tmp_path)


def test_a_bundle_predicts_without_the_service(
    tiny_services: Services, tiny_base: Base, version: EmbeddingVersion, tmp_path: Path
) -> None:
    expected = Predictor(tiny_services).predict(INPUTS)
    fetched = fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    assert find_base(str(fetched.files[2])).digest == tiny_base.digest
    shutil.rmtree(tiny_services.settings.resolved_home)
    predictor = Predictor(tmp_path / "bundle")
    answers = predictor.predict(INPUTS)
    for answer, same in zip(answers, expected, strict=True):
        assert (answer.label, answer.task, answer.version) == (same.label, "mood", 1)
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-6)
    assert predictor.predict([{"task": "mood", "ref": "v1", "text": "good"}])[0].version == 1
    assert predictor.predict([{"task": "sst2", "text": "good"}])[0].task == "sst2"
    for ref in ("v2", "production"):
        with pytest.raises(NotFoundError):
            predictor.predict([{"task": "mood", "ref": ref, "text": "good"}])


def test_a_bundle_of_a_later_hypernetwork_brings_it_and_predicts_the_same_without_the_service(
    tiny_services: Services, tiny_base: Base, version: EmbeddingVersion, tmp_path: Path
) -> None:
    head = tuned_head(tiny_services, tiny_base, 0.5)
    pins = {"pinned": head.digest, "hypernetwork_version": 2}
    add_version(tiny_services, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(3), **pins)
    first, expected = (
        Predictor(tiny_services).predict([{**asked, "ref": ref} for asked in INPUTS]) for ref in ("v1", "v2")
    )
    fetched = fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    names = ["embedding.safetensors", "card.md", "base", "hypernetwork.safetensors"]
    assert [path.name for path in fetched.files] == names
    assert [path.name for path in fetch(tiny_services, "mood@v1", tmp_path / "first", bundle=True).files] == names[:3]
    shutil.rmtree(tiny_services.settings.resolved_home)
    predictor = Predictor(tmp_path / "bundle")
    answers = predictor.predict(INPUTS)
    for answer, same, other in zip(answers, expected, first, strict=True):
        assert (answer.label, answer.version) == (same.label, 2)
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-6)
        assert np.abs(np.subtract(answer.probabilities, other.probabilities)).max() > 1e-3
    _, beside = predictor.predict([{"task": "sst2", "text": "good"}, INPUTS[0]])
    np.testing.assert_allclose(beside.probabilities, expected[0].probabilities, atol=1e-6)


@pytest.mark.parametrize("wrong", ["missing", "damaged", "another"])
def test_a_bundle_with_another_hypernetwork_than_its_embedding_is_pinned_to_is_refused(
    tiny_services: Services, tiny_base: Base, tmp_path: Path, wrong: str
) -> None:
    head = tuned_head(tiny_services, tiny_base)
    add_version(tiny_services, tiny_base, "mood", (1, 2), ("good", "bad"), pinned=head.digest, hypernetwork_version=2)
    fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    file = tmp_path / "bundle" / "hypernetwork.safetensors"
    content = file.read_bytes()
    if wrong == "missing":
        file.unlink()
    elif wrong == "damaged":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        file.write_bytes((tiny_base.folder / "hypernetwork.safetensors").read_bytes())
    with refused("bundle-hypernetwork-missing", hypernetwork_version=2):
        Predictor(tmp_path / "bundle")


def test_a_bundle_whose_hypernetwork_is_gone_is_not_begun(
    tiny_services: Services, tiny_base: Base, tmp_path: Path
) -> None:
    head = tuned_head(tiny_services, tiny_base)
    add_version(tiny_services, tiny_base, "mood", (1, 2), ("good", "bad"), hypernetwork_version=2)
    name = head.digest.removeprefix("sha256:")
    (tiny_services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name).unlink()
    with pytest.raises(DamagedError):
        fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_that_was_fetched_before_stays_and_another_base_is_not_mixed_in(
    tiny_services: Services, version: EmbeddingVersion, tmp_path: Path
) -> None:
    fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    (tmp_path / "bundle" / "base" / "mine.txt").write_text("hours of work", encoding="utf-8")
    with pytest.raises(ConflictError):
        fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    assert (tmp_path / "bundle" / "base" / "mine.txt").read_text(encoding="utf-8") == "hours of work"
    with pytest.raises(PinMismatchError):
        Predictor(tmp_path / "bundle")


def test_a_bundle_needs_the_base_that_the_version_is_pinned_to(
    tiny_services: Services, other_base: Base, tmp_path: Path
) -> None:
    shutil.copytree(other_base.folder, tmp_path / "lent")
    lent = find_base(str(tmp_path / "lent"))
    register_base(tiny_services, lent)
    add_version(tiny_services, lent, "foreign", (1, 2), ("good", "bad"))
    fetched = fetch(tiny_services, "foreign", tmp_path / "here", bundle=True)
    assert find_base(str(fetched.files[2])).digest == lent.digest  # known by its folder, though ONBOARD_BASE is another
    shutil.rmtree(tmp_path / "lent")
    with refused("version-of-other-base", version="foreign@v1"):
        fetch(tiny_services, "foreign", tmp_path / "bundle", bundle=True)
    assert not (tmp_path / "bundle").exists()


def test_damaged_bytes_are_never_handed_out(tiny_services: Services, version: EmbeddingVersion, tmp_path: Path) -> None:
    name = version.artifact.removeprefix("sha256:")
    path = tiny_services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DamagedError):
        fetch(tiny_services, "mood", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_numbers_that_are_not_the_versions_are_told(tiny_services: Services, tiny_base: Base, tmp_path: Path) -> None:
    add_version(tiny_services, tiny_base, "odd", (1, 2), ("good", "bad"), embedding_digest="sha256:" + "0" * 64)
    with refused("embedding-digest-differs", version="odd@v1"):
        fetch(tiny_services, "odd", tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_not_allowed(
    tiny_services: Services, version: EmbeddingVersion, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for output in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(NotAllowedError) as caught:
            fetch(tiny_services, "mood", output)
        assert "--output" in caught.value.remedy
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_leaves_no_half_file_and_what_was_there_stays(
    tiny_services: Services, version: EmbeddingVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "embedding.safetensors").write_bytes(b"the last version")

    def half(path: Path) -> None:
        path.write_bytes(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onboard.contract.version_files.open_new", half)
    with refused("output-not-writable", reason="No space left on device"):
        fetch(tiny_services, "mood", tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "embedding.safetensors").read_bytes() == b"the last version"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["embedding.safetensors"]


def test_a_base_that_moved_on_is_told_when_its_versions_are_asked_for(
    tiny_services: Services, version: EmbeddingVersion, tmp_path: Path
) -> None:
    made = make_tiny_base(tmp_path / "anew", seed=7)
    settings = tiny_services.settings.model_copy(update={"base": str(made.folder)})
    other = Services(settings, tiny_services.database, tiny_services.artifacts, "cpu")
    with pytest.raises(PinMismatchError):
        Predictor(other).predict(INPUTS)
