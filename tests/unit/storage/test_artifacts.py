"""The artifact store: whole or not at all, verified on reading, no path from outside."""

from __future__ import annotations

import errno
import os
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.refusals import refused

from onboard.errors import InputError, NotAllowedError, StorageError
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.services import Services
from onboard.storage.artifacts import ArtifactStore, digest_of


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "artifacts"))


def files(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]


def test_what_was_put_is_got(store: ArtifactStore, tmp_path: Path) -> None:
    digest = store.put(b"tensors", "embedding")
    assert digest == digest_of(b"tensors")
    assert store.get(digest) == b"tensors"
    assert store.has(digest)
    assert [path.name for path in files(tmp_path)] == [digest.removeprefix("sha256:")]


def test_an_object_store_by_url_works_the_same() -> None:
    store = ArtifactStore("memory://bucket/prefix")
    digest = store.put(b"tensors", "embedding")
    assert store.get(digest) == b"tensors"
    assert store.file(digest) is None
    store.delete(digest)
    assert not store.has(digest)


def test_the_same_bytes_are_stored_once(store: ArtifactStore, tmp_path: Path) -> None:
    store.put(b"tensors", "embedding")
    (path,) = files(tmp_path)
    before = path.stat().st_mtime_ns
    store.put(b"tensors", "embedding")
    assert path.stat().st_mtime_ns == before


def test_damaged_bytes_are_refused_and_mended_by_putting_them_again(store: ArtifactStore, tmp_path: Path) -> None:
    digest = store.put(b"tensors", "embedding")
    files(tmp_path)[0].write_bytes(b"tensorz")
    for read in (store.get, store.file):
        with refused("artifact-damaged-in-store", digest=digest):
            read(digest)
    store.put(b"tensors", "embedding")
    assert store.get(digest) == b"tensors"
    assert store.file(digest) == files(tmp_path)[0]


def test_absent_bytes_are_not_found_and_deleting_them_is_harmless(store: ArtifactStore) -> None:
    digest = digest_of(b"absent")
    with refused("artifact-not-in-store", digest=digest):
        store.get(digest)
    store.delete(digest)
    assert not store.has(digest)


@pytest.mark.parametrize(
    "digest", ["../../etc/passwd", "sha256:../../../etc/passwd", "sha256:AB", "", "sha256:" + "g" * 64]
)
def test_only_digests_are_keys(store: ArtifactStore, digest: str) -> None:
    for act in (store.get, store.has, store.delete):
        with pytest.raises(InputError):
            act(digest)


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StorageError),
        (errno.EDQUOT, StorageError),
        (errno.EIO, StorageError),
        (errno.EROFS, NotAllowedError),
    ],
)
def test_a_failing_disk_leaves_no_half_file(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error) as caught:
        store.put(b"tensors", "embedding")
    assert files(tmp_path) == []
    assert caught.value.remedy
    monkeypatch.undo()
    assert store.get(store.put(b"tensors", "embedding")) == b"tensors"


def test_a_write_that_breaks_off_midway_is_told_and_leaves_no_half_file(store: ArtifactStore, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageError, match=r"this embedding \(200000 bytes\)"):
            store.put(b"x" * 200_000, "embedding")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with refused("store-forbidden", failed="this embedding (7 bytes) cannot be stored"):
        ArtifactStore(str(tmp_path / "file" / "artifacts")).put(b"tensors", "embedding")


def test_an_unknown_kind_of_store_names_the_setting() -> None:
    with pytest.raises(InputError) as caught:
        ArtifactStore("gopher://bucket")
    assert "ONBOARD_ARTIFACT_URL" in caught.value.remedy


def test_many_putting_the_same_bytes_at_once_leave_one_whole_file(store: ArtifactStore, tmp_path: Path) -> None:
    together = threading.Barrier(8)
    data = b"x" * 200_000

    def put() -> str:
        together.wait()
        return store.put(data, "embedding")

    with ThreadPoolExecutor(8) as pool:
        digests = {future.result() for future in [pool.submit(put) for _ in range(8)]}
    assert len(digests) == 1
    assert store.get(digests.pop()) == data
    assert len(files(tmp_path)) == 1


def test_a_services_row_is_committed_before_its_bytes_are_written(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: ArtifactStore, data: bytes, kind: str) -> str:
        raise StorageError("full")

    monkeypatch.setattr(ArtifactStore, "put", fail)
    with pytest.raises(StorageError):
        services.store(b"tensors", "embedding")
    digest = digest_of(b"tensors")
    with services.database.read() as session:
        assert [artifact.digest for artifact in ArtifactRepository(session).beginning_with(digest[7:9])] == [digest]
