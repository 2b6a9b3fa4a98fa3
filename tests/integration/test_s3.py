"""Artifacts in a real S3-compatible server behave as those in a folder, and its failures are said in our words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from s3fs import S3FileSystem
from support.deployed import Command
from support.program import Place
from support.real_jobs import opinions
from support.real_s3 import Credentials, S3Server
from support.real_services import free_port
from support.refusals import refused

from onboard.bases import Base
from onboard.errors import NotAllowedError, StorageError
from onboard.storage.artifacts import ArtifactStore, digest_of

ABSENT = digest_of(b"absent")
MAY_READ = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}],
}


@dataclass
class FolderSide:
    """What lies in a folder, seen without the store."""

    url: str

    def names(self) -> list[str]:
        root = Path(self.url)
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())

    def overwrite(self, name: str, data: bytes) -> None:
        (Path(self.url) / name).write_bytes(data)


@dataclass
class BucketSide:
    """What lies in a bucket, seen without the store."""

    url: str
    server: S3Server

    def names(self) -> list[str]:
        objects = self.server.client().list_objects_v2(Bucket="onboard").get("Contents", [])
        return sorted(str(stored["Key"]).removeprefix("artifacts/") for stored in objects)

    def overwrite(self, name: str, data: bytes) -> None:
        self.server.client().put_object(Bucket="onboard", Key=f"artifacts/{name}", Body=data)


@pytest.fixture(params=["folder", "s3"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> FolderSide | BucketSide:
    if request.param == "folder":
        return FolderSide(str(tmp_path / "artifacts"))
    return BucketSide(request.getfixturevalue("s3_url"), request.getfixturevalue("s3_server"))


@pytest.fixture
def store(side: FolderSide | BucketSide) -> ArtifactStore:
    return ArtifactStore(side.url)


def name_of(digest: str) -> str:
    name = digest.removeprefix("sha256:")
    return f"sha256/{name[:2]}/{name}"


def test_bytes_are_put_got_and_deleted_under_their_digest(store: ArtifactStore, side: FolderSide | BucketSide) -> None:
    digest = store.put(b"tensors", "embedding")
    assert side.names() == [name_of(digest)]
    assert store.get(digest) == b"tensors"
    assert store.has(digest)
    assert store.size_bytes(digest) == 7
    store.delete(digest)
    assert not store.has(digest)
    assert side.names() == []


def test_absent_bytes_are_not_found_and_deleting_them_is_harmless(store: ArtifactStore) -> None:
    with refused("artifact-not-in-store", digest=ABSENT):
        store.get(ABSENT)
    store.delete(ABSENT)
    store.delete(ABSENT, digest_of(b"absent too"))
    assert not store.has(ABSENT)
    assert store.size_bytes(ABSENT) is None


def test_damaged_bytes_are_refused_and_mended_by_putting_them_again(
    store: ArtifactStore, side: FolderSide | BucketSide
) -> None:
    digest = store.put(b"tensors", "embedding")
    side.overwrite(name_of(digest), b"tensorz")
    with refused("artifact-damaged-in-store", digest=digest):
        store.get(digest)
    store.put(b"tensors", "embedding")
    assert store.get(digest) == b"tensors"


def test_many_putting_the_same_bytes_at_once_leave_one_whole_file(
    store: ArtifactStore, side: FolderSide | BucketSide
) -> None:
    together = threading.Barrier(8)
    data = b"x" * 200_000

    def put() -> str:
        together.wait()
        return ArtifactStore(side.url).put(data, "embedding")

    with ThreadPoolExecutor(8) as pool:
        digests = {future.result() for future in [pool.submit(put) for _ in range(8)]}
    assert len(digests) == 1
    assert store.get(digests.pop()) == data
    assert len(side.names()) == 1


def test_what_another_process_writes_or_deletes_is_seen_at_once(
    store: ArtifactStore, side: FolderSide | BucketSide
) -> None:
    digest = store.put(b"tensors", "embedding")
    shard = digest.removeprefix("sha256:")[:2]
    assert store.shards() == {shard}
    assert list(store.in_shard(shard)) == [digest]
    near = f"sha256:{shard}{'0' * 62}"
    side.overwrite(name_of(near), b"zero")
    assert sorted(store.in_shard(shard)) == sorted([digest, near])
    assert store.in_shard(shard)[near].size_bytes == 4
    store.delete(digest, near)
    assert store.in_shard(shard) == {}


def use(credentials: Credentials, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in credentials.environment.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()


def every_way(store: ArtifactStore) -> tuple[Callable[[], object], ...]:
    """To write, to read and to look."""
    return partial(store.put, b"tensors", "embedding"), partial(store.get, ABSENT), partial(store.has, ABSENT)


def test_a_missing_bucket_is_told_and_is_no_missing_artifact(s3_url: str) -> None:
    put, get, _ = every_way(ArtifactStore("s3://elsewhere/artifacts"))
    for act in (put, get):
        with refused("store-failed", store="s3://elsewhere/artifacts") as caught:
            act()
        assert caught.value.data["reason"] == "The specified bucket does not exist"
        assert "ONBOARD_ARTIFACT_URL" in caught.value.remedy


def test_wrong_credentials_are_told_and_are_no_missing_artifact(
    s3_url: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = s3_server.make_user(json.dumps(MAY_READ))
    for credentials in (user.with_secret("wrong-secret"), s3_server.credentials):
        use(credentials, monkeypatch)
        for act in every_way(ArtifactStore(s3_url)):
            with pytest.raises(NotAllowedError) as caught:
                act()
            assert "credentials" in caught.value.remedy
            assert "wrong-secret" not in caught.value.message


def test_whoever_may_only_read_reads_and_is_told_when_writing(
    s3_url: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = ArtifactStore(s3_url).put(b"tensors", "embedding")
    use(s3_server.make_user(json.dumps(MAY_READ)), monkeypatch)
    store = ArtifactStore(s3_url)
    assert store.get(digest) == b"tensors"
    with refused("store-forbidden", failed="this embedding (12 bytes) cannot be stored"):
        store.put(b"more tensors", "embedding")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:{port}"),
        ("AWS_ENDPOINT_URL", "127.0.0.1"),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("AWS_PROFILE", "nobody"),
    ],
)
def test_a_store_that_is_away_or_not_set_up_is_unavailable_and_worth_another_try(
    s3_url: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value.format(port=free_port()))
    S3FileSystem.clear_instance_cache()
    for act in every_way(ArtifactStore(s3_url)):
        with pytest.raises(StorageError) as caught:
            act()
        assert caught.value.retryable
        assert "credentials" in caught.value.remedy


@pytest.fixture
def grown(
    tmp_path: Path, tiny_base: Base, postgres_url: str, redis_url: str, s3_url: str, s3_server: S3Server
) -> Place:
    """The three variables, beside what the S3 client reads."""
    three = {
        "ONBOARD_DATABASE_URL": postgres_url,
        "ONBOARD_BROKER_URL": redis_url,
        "ONBOARD_ARTIFACT_URL": s3_url,
    }
    place = Place(tmp_path, tiny_base.folder, three | s3_server.credentials.environment)
    place.folder.mkdir(exist_ok=True)
    return place


@pytest.fixture
def worker(grown: Place) -> Iterator[Command]:
    warnings = {"PYTHONWARNINGS": "always::ResourceWarning,always::RuntimeWarning"}  # what asyncio leaves behind
    with Command(["worker", "--name", "w1"], grown.environment | warnings, grown.folder) as worker:
        yield worker


@pytest.mark.services
def test_three_variables_make_a_deployment_of_postgresql_redis_and_s3(
    grown: Place, worker: Command, s3_server: S3Server
) -> None:
    rows = grown.write("mood.jsonl", opinions(24))
    alone = "--tune-hypernetwork", "never", "--readout", "never"
    document = grown.json("submit", "--dataset", rows, *alone, "--wait")
    assert (document["state"], document["version"]) == ("succeeded", 1)
    fetched = grown.json("fetch", "mood", "--output", grown.folder / "fetched")
    assert fetched["embedding_digest"] == document["embedding_digest"]
    (prediction,) = grown.json("predict", "mood", "--text", "the film was good")["predictions"]
    assert (prediction["label"] in ("yes", "no"), prediction["version"]) == (True, 1)
    stored = BucketSide("", s3_server).names()
    assert name_of(fetched["artifact"]) in stored
    assert not (grown.home / "artifacts").exists()
    assert worker.stop() == 0
    assert "Warning" not in worker.said()
    assert "Traceback" not in worker.said()
