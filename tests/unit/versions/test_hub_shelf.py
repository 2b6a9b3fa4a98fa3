"""`onboard push` and `onboard pull` against a small hub on this machine, and against none."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import model_signing.hashing
import model_signing.verifying
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from support.command_line import CommandLine
from support.fake_hub import COMMIT, HubHandler, hub_of
from support.refusals import refused

from onboard.contract.version_files import write_files
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.errors import ConflictError, DamagedError, NotAllowedError, UnavailableError
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.storage.weights import pack_weights, weights_digest
from onboard.versions.hub_place import HubPlace
from onboard.versions.pulling import PullTerms, pull
from onboard.versions.shelf import MANIFEST, push

HERE = HubPlace("owner/mood")
Z = np.arange(8, dtype=np.float32)
VERSION = EmbeddingVersion(
    task="mood", version=2, kind="onboarded", artifact="sha256:a", embedding_digest=embedding_digest(Z),
    backbone_digest="sha256:b", base_digest="sha256:c", hypernetwork_version=1, dataset_digest="sha256:d",
    parent="sst2@v1", task_kind="classification", labels=("no", "yes"), words=("no", "yes"), code_version="0.1.0",
    method="hyperformer++", seeds=(7,), job="0123456789ab", created_at=1e9,
    metrics={"test": {"accuracy": {"value": 0.91, "low": 0.8, "high": 0.95, "n": 60}}},
)  # fmt: skip


class FakeHub(HubHandler):
    """Takes commits and gives files the way the hub's API does."""

    repositories: ClassVar[dict[str, dict[str, bytes]]] = {}
    refuses: ClassVar[int] = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        if self.refuses:
            return self.answer(self.refuses, {"error": "no"})
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.repositories.setdefault(name, {})
            return self.answer(200, {"url": f"{self.origin}/{name}"})
        if path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if "/preupload/" in path:
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for file in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": files})
        repository = path.removeprefix("/api/models/").partition("/commit/")[0]
        for line in body.splitlines():
            part = json.loads(line)
            if part["key"] == "file":
                content = base64.b64decode(part["value"]["content"])
                self.repositories[repository][part["value"]["path"]] = content
            if part["key"] == "deletedFile":
                del self.repositories[repository][part["value"]["path"]]
        return self.answer(200, {"commitUrl": f"{self.origin}/{repository}/commit/{COMMIT}", "commitOid": COMMIT})

    def do_GET(self) -> None:
        self.give(body=True)

    def do_HEAD(self) -> None:
        self.give(body=False)

    def give(self, *, body: bool) -> None:
        path = unquote(self.path.partition("?")[0])
        if path.startswith("/api/models/"):
            repository = path.removeprefix("/api/models/").partition("/revision/")[0]
            if repository not in self.repositories:
                return self.answer(404, {}, {"X-Error-Code": "RepoNotFound"})
            files = self.repositories[repository]
            siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
            return self.answer(200, {"id": repository, "sha": COMMIT, "siblings": siblings})
        repository, _, rest = path.removeprefix("/").partition("/resolve/")
        name = rest.partition("/")[2]
        content = self.repositories[repository][name]
        headers = {
            "ETag": f'"{sha1(content).hexdigest()}"',
            "X-Repo-Commit": COMMIT,
            "Content-Length": str(len(content)),
        }
        return self.send(200, content if body else b"", headers)

    @property
    def origin(self) -> str:
        return f"http://{self.headers['Host']}"

    def answer(self, status: int, document: dict[str, Any], more: dict[str, str] | None = None) -> None:
        content = json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(more or {})}
        self.send(status, b"" if self.command == "HEAD" else content, headers)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    FakeHub.repositories = {}
    FakeHub.refuses = 0
    with hub_of(FakeHub, monkeypatch) as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `onboard fetch --bundle` writes, in small."""
    fetched = tmp_path / "fetched"
    write_files(VERSION, pack_embedding(Z, embedding_facts(VERSION, "sha256:h")), fetched)
    (fetched / "base" / "tokenizer").mkdir(parents=True)
    (fetched / "base" / "base.json").write_text("{}")
    (fetched / "base" / "tokenizer" / "tokenizer.json").write_text("{}")
    return fetched


def pulled_to(output: Path, endpoint: str, place: HubPlace = HERE) -> list[str]:
    pulled = pull(place, lambda version: output, endpoint=endpoint)
    assert pulled.version == replace(VERSION, fingerprint=None)
    return sorted(path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file())


def test_what_is_pushed_is_pulled_as_it_was(endpoint: str, folder: Path, tmp_path: Path) -> None:
    pushed = push(VERSION, folder, HERE, licence="apache-2.0", endpoint=endpoint)
    assert (str(pushed.place), pushed.has_base) == (f"hf://owner/mood@{COMMIT}", True)
    names = ["base/base.json", "base/tokenizer/tokenizer.json", "card.md", "embedding.safetensors"]
    assert pulled_to(tmp_path / "pulled", endpoint) == names
    for name in names:
        assert (tmp_path / "pulled" / name).read_bytes() == (folder / name).read_bytes()
    assert pulled_to(tmp_path / "pulled", endpoint) == names  # the same again changes nothing


def test_weights_of_a_task_s_own_go_the_same_way(endpoint: str, tmp_path: Path) -> None:
    tensors = {"weights": np.ones((2, 4), dtype=np.float16), "bias": np.zeros(2, dtype=np.float32)}
    version = replace(VERSION, method="linear", embedding_digest=weights_digest(tensors), fingerprint=None)
    write_files(version, pack_weights(tensors, embedding_facts(version, "sha256:h")), tmp_path / "fetched")
    pushed = push(version, tmp_path / "fetched", HERE, endpoint=endpoint)
    assert sorted(pushed.files) == ["weights.safetensors"]
    pulled = pull(HERE, lambda _: tmp_path / "pulled", endpoint=endpoint)
    assert (pulled.version, [path.name for path in pulled.files]) == (version, ["weights.safetensors", "card.md"])
    assert pulled.files[0].read_bytes() == (tmp_path / "fetched" / "weights.safetensors").read_bytes()
    later = replace(version, method="later")
    with refused("method-unknown-to-release", method="later"):
        push(later, tmp_path / "fetched", HERE, endpoint=endpoint)


def test_the_card_on_the_hub_says_what_the_hub_reads(endpoint: str, folder: Path) -> None:
    push(VERSION, folder, HERE, licence="apache-2.0", endpoint=endpoint)
    card = FakeHub.repositories["owner/mood"]["README.md"].decode()
    for words in ("license: apache-2.0", "library_name: onboard", "type: accuracy", "value: 0.91", "# mood@v2"):
        assert words in card
    assert card.startswith("---\n")


def test_a_file_that_differs_from_its_digest_is_refused_and_nothing_is_written(
    endpoint: str, folder: Path, tmp_path: Path
) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    FakeHub.repositories["owner/mood"]["base/base.json"] = b"{ }"
    with refused("pull-file-damaged", file="base/base.json"):
        pulled_to(tmp_path / "pulled", endpoint)
    assert not (tmp_path / "pulled").exists()


def spoiled(document: dict[str, Any], **files: str) -> dict[str, Any]:
    return {**document, "files": {**document["files"], **files}}


@pytest.mark.parametrize(
    ("spoil", "type_"),
    [
        (lambda document: spoiled(document, **{"model.bin": "sha256:x"}), "pull-file-name-invalid"),
        (lambda document: spoiled(document, **{"../up.json": "sha256:x"}), "pull-file-name-invalid"),
        (lambda document: spoiled(document, **{"readout.safetensors": "sha256:x"}), "pull-file-missing"),
        (lambda document: {**document, "format": 99}, "pull-of-later-release"),
        (lambda document: {**document, "version": {**document["version"], "task": "../x"}}, "name-invalid"),
        (lambda document: {**document, "version": {**document["version"], "version": "../../x"}},
         "pull-manifest-damaged"),
        (lambda document: {**document, "version": {**document["version"], "embedding_digest": "sha256:0"}},
         "embedding-digest-differs"),
        (lambda document: {}, "pull-manifest-damaged"),
        *((lambda document, name=name: spoiled(document, **{name: "sha256:x"}), "pull-file-name-invalid") for name in (
            "card.md", "README.md", "onboard.json", "model.sig", "notes.txt", "base", "base/", "base/a/b/c.json",
            "base/a\0.json", "base/.hidden.json", "base/run.py", "embedding.safetensors/x.json", "Base/base.json",
            "base/" + "a" * 300 + ".json", "base/\ud800.json",
        )),
        *((lambda document, metrics=metrics: {**document, "version": {**document["version"], "metrics": metrics}},
           "pull-manifest-damaged") for metrics in (
            "none", [1], {"test": 3}, {"test": {"accuracy": "high"}}, {"test": {"accuracy": {"value": None}}},
        )),
        (lambda document: {**document, "version": {**document["version"], "version": -1}}, "pull-manifest-damaged"),
    ],
)  # fmt: skip
def test_a_manifest_that_lies_is_refused(spoil, type_, endpoint: str, folder: Path, tmp_path: Path) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    document = json.loads(FakeHub.repositories["owner/mood"][MANIFEST])
    FakeHub.repositories["owner/mood"][MANIFEST] = json.dumps(spoil(document)).encode()
    with refused(type_):
        pulled_to(tmp_path / "pulled", endpoint)
    assert not (tmp_path / "pulled").exists()


def test_another_base_in_the_folder_is_left_alone(endpoint: str, folder: Path, tmp_path: Path) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    (tmp_path / "pulled" / "base").mkdir(parents=True)
    (tmp_path / "pulled" / "base" / "base.json").write_text("another")
    with refused("pull-folder-occupied"):
        pulled_to(tmp_path / "pulled", endpoint)


def test_nothing_that_is_executed_when_it_is_loaded_is_pushed(endpoint: str, folder: Path) -> None:
    (folder / "base" / "pytorch_model.bin").write_bytes(b"x")
    with refused("push-file-foreign", name="base/pytorch_model.bin"):
        push(VERSION, folder, HERE, endpoint=endpoint)
    assert FakeHub.repositories == {}


def test_another_embedding_than_that_of_the_version_is_not_pushed(endpoint: str, folder: Path) -> None:
    with pytest.raises(DamagedError):
        push(replace(VERSION, embedding_digest="sha256:0"), folder, HERE, endpoint=endpoint)
    assert FakeHub.repositories == {}


@pytest.mark.parametrize(
    "text", ["owner/mood", "hf://mood", "hf://owner/mood/config", "hf://../x", "hf://a/b@", "hf://"]
)
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with refused("hub-place-invalid"):
        HubPlace.parse(text)
    assert HubPlace.parse("hf://owner/mood@v1") == HubPlace("owner/mood", "v1")


@pytest.mark.parametrize("status", [401, 403])
def test_whoever_may_not_write_is_told_to_sign_in(status: int, endpoint: str, folder: Path) -> None:
    FakeHub.refuses = status
    with pytest.raises(NotAllowedError) as caught:
        push(VERSION, folder, HERE, endpoint=endpoint)
    assert "hf auth login" in caught.value.remedy


def test_what_is_not_there_or_no_version_is_said(endpoint: str, tmp_path: Path) -> None:
    with refused("unknown-hub-version", place="hf://owner/mood"):
        pulled_to(tmp_path / "pulled", endpoint)
    FakeHub.repositories["owner/mood"] = {"model.safetensors": b"x"}
    with refused("hub-without-version"):
        pulled_to(tmp_path / "pulled", endpoint)


def test_a_hub_that_refuses_connections_is_unavailable(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    with pytest.raises(UnavailableError):
        push(VERSION, folder, HERE, endpoint="http://127.0.0.1:9")
    with pytest.raises(UnavailableError):
        pulled_to(tmp_path / "pulled", "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A private key, its public half, and the public half of another."""
    folder = tmp_path_factory.mktemp("keys")
    for name, curve in (("ours", ec.SECP256R1()), ("theirs", ec.SECP384R1())):
        private = ec.generate_private_key(curve)
        (folder / f"{name}.pem").write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(public)
    locked = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (folder / "locked.pem").write_bytes(locked)
    return folder / "ours.pem", folder / "ours.pub", folder / "theirs.pub"


def test_what_is_signed_is_pulled_by_who_has_the_public_key_and_the_library_agrees(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    private, public, _ = keys
    assert push(VERSION, folder, HERE, key=private, endpoint=endpoint).signed
    pulled = pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=public), endpoint=endpoint)
    assert (pulled.signed, pulled.verified, pulled.version) == (True, True, VERSION)
    assert (tmp_path / "pulled" / "base" / "base.json").read_text() == "{}"
    unchecked = pull(HERE, lambda _: tmp_path / "pulled", endpoint=endpoint)
    assert (unchecked.signed, unchecked.verified) == (True, False)
    for name, content in FakeHub.repositories["owner/mood"].items():  # as somebody has it who downloads all of it
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(content)
    hashing = model_signing.hashing.Config().set_ignored_paths(paths=["model.sig"])
    config = model_signing.verifying.Config().use_elliptic_key_verifier(public_key=public).set_hashing_config(hashing)
    config.verify(tmp_path / "all", tmp_path / "all" / "model.sig")


def test_what_another_signed_or_nobody_is_refused(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    private, public, other = keys
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    with refused("signature-invalid"):
        pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=other), endpoint=endpoint)
    signed = json.loads(FakeHub.repositories["owner/mood"]["model.sig"])
    hint = {"publicKey": {"hint": sha256(other.read_bytes()).hexdigest()}}  # says that it is the other's
    claimed = {**signed, "verificationMaterial": {**signed["verificationMaterial"], **hint}}
    FakeHub.repositories["owner/mood"]["model.sig"] = json.dumps(claimed).encode()
    with refused("signature-invalid"):
        pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=other), endpoint=endpoint)
    push(VERSION, folder, HERE, endpoint=endpoint)
    assert "model.sig" not in FakeHub.repositories["owner/mood"]
    with refused("signature-missing"):
        pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=public), endpoint=endpoint)
    assert not (tmp_path / "pulled").exists()


def test_no_file_can_be_changed_added_or_left_out_under_a_signature(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    private, public, _ = keys
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    signed = dict(FakeHub.repositories["owner/mood"])
    manifest = json.loads(signed[MANIFEST])
    changed = {**manifest["files"], "base/base.json": f"sha256:{sha256(b'[]').hexdigest()}"}
    fewer = {name: digest for name, digest in manifest["files"].items() if name != "base/base.json"}
    others: list[dict[str, bytes]] = [
        {"base/base.json": b"[]", MANIFEST: json.dumps({**manifest, "files": changed}).encode()},
        {MANIFEST: json.dumps({**manifest, "files": fewer}).encode()},
        {MANIFEST: json.dumps({**manifest, "version": {**manifest["version"], "words": ["yes", "no"]}}).encode()},
        {"README.md": b"better than it is"},
        {"model.sig": b"{}"},
        {"model.sig": b"\xff"},
        {"model.sig": b"[" * 100_000},
        {"model.sig": signed["model.sig"].replace(b'"payload":"', b'"payload":"A')},
        {"model.sig": signed["model.sig"].replace(b'"signatures":[', b'"signatures":[],"x":[')},
    ]
    for files in others:
        FakeHub.repositories["owner/mood"] = {**signed, **files}
        with refused("signature-invalid"):
            pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=public), endpoint=endpoint)
    assert not (tmp_path / "pulled").exists()


def test_a_key_that_is_none_is_refused_before_anything_is_pushed_or_pulled(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    private, public, _ = keys
    for file in (public, private.with_name("locked.pem"), folder / "base" / "base.json"):
        with refused("signing-key-invalid") as caught:
            push(VERSION, folder, HERE, key=file, endpoint=endpoint)
        assert "openssl ecparam" in caught.value.remedy
    with refused("signing-key-missing"):
        push(VERSION, folder, HERE, key=tmp_path / "none.pem", endpoint=endpoint)
    assert FakeHub.repositories == {}
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    monkeypatch.setattr("onboard.versions.pulling.listed", lambda *_: pytest.fail("the hub is asked"))
    with refused("signing-key-invalid"):
        pull(HERE, lambda _: tmp_path / "pulled", PullTerms(key=private), endpoint=endpoint)


def test_files_of_an_earlier_version_leave_and_those_of_people_stay(endpoint: str, folder: Path) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    FakeHub.repositories["owner/mood"]["picture.png"] = b"x"
    (folder / "base" / "tokenizer" / "tokenizer.json").unlink()
    push(VERSION, folder, HERE, endpoint=endpoint)
    names = {"README.md", MANIFEST, "embedding.safetensors", "base/base.json", "picture.png"}
    assert set(FakeHub.repositories["owner/mood"]) == names


def test_the_command_line_takes_keys_as_options_or_from_the_settings(
    endpoint: str,
    folder: Path,
    tmp_path: Path,
    keys: tuple[Path, Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    command_line: CommandLine,
) -> None:
    private, public, other = keys
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    monkeypatch.setattr("onboard.versions.pulling.pull", partial(pull, endpoint=endpoint))
    pulled = command_line("pull", "hf://owner/mood", "--output", tmp_path / "pulled", "--json")
    assert (pulled.document["signed"], pulled.document["signature_verified"]) == (True, False)
    assert "--trusted-key" in pulled.err
    arguments = ("pull", "hf://owner/mood", "--output", tmp_path / "pulled", "--json")
    assert command_line(*arguments, "--trusted-key", public).document["signature_verified"]
    monkeypatch.setenv("ONBOARD_TRUSTED_KEY", str(other))
    assert command_line(*arguments).code == 1
    assert command_line(*arguments, "--trusted-key", public).code == 0


def expecting(reference: str) -> PullTerms:
    return PullTerms(expected=Reference.parse(reference))


def lies_there(**changes: Any) -> None:
    """Change what the manifest on the hub says of its version."""
    document = json.loads(FakeHub.repositories["owner/mood"][MANIFEST])
    document["version"].update(changes)
    FakeHub.repositories["owner/mood"][MANIFEST] = json.dumps(document).encode()


def test_files_that_hold_something_else_are_overwritten_only_if_that_is_asked_for(
    endpoint: str, folder: Path, tmp_path: Path
) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    for name in ("embedding.safetensors", "card.md"):
        output = tmp_path / name
        output.mkdir()
        (output / name).write_bytes(b"mine")
        with refused("pull-file-exists"):
            pull(HERE, lambda _, output=output: output, endpoint=endpoint)
        assert [path.name for path in output.iterdir()] == [name]
        assert (output / name).read_bytes() == b"mine"
        pull(HERE, lambda _, output=output: output, PullTerms(overwrite=True), endpoint=endpoint)
        assert (output / name).read_bytes() == (folder / name).read_bytes()
    outside = tmp_path / "outside"
    outside.write_bytes((folder / "card.md").read_bytes())
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "card.md").symlink_to(outside)
    with pytest.raises(ConflictError):
        pulled_to(tmp_path / "linked", endpoint)


def test_a_version_of_another_task_or_an_older_one_than_demanded_is_refused(
    endpoint: str, folder: Path, tmp_path: Path
) -> None:
    push(VERSION, folder, HERE, endpoint=endpoint)
    for expected, type_ in (("tone", "pull-unexpected-task"), ("mood@v3", "pull-older-than-expected")):
        with refused(type_):
            pull(HERE, lambda _: tmp_path / "pulled", expecting(expected), endpoint=endpoint)
    assert not (tmp_path / "pulled").exists()
    pull(HERE, lambda _: tmp_path / "pulled", expecting("mood@v2"), endpoint=endpoint)


def test_what_is_older_than_the_newest_pulled_before_is_refused(endpoint: str, folder: Path, tmp_path: Path) -> None:
    remembering = PullTerms(home=tmp_path / "home")
    push(VERSION, folder, HERE, endpoint=endpoint)
    output = tmp_path / "pulled"
    pull(HERE, lambda _: output, remembering, endpoint=endpoint)
    pull(HERE, lambda _: output, remembering, endpoint=endpoint)  # the same once more
    newer = replace(VERSION, version=3)
    write_files(newer, pack_embedding(Z, embedding_facts(newer, "sha256:h")), tmp_path / "newer")
    push(newer, tmp_path / "newer", HERE, endpoint=endpoint)
    pull(HERE, lambda _: tmp_path / "3", remembering, endpoint=endpoint)
    push(VERSION, folder, HERE, endpoint=endpoint)
    with refused("pull-older-than-before") as caught:
        pull(HERE, lambda _: output, remembering, endpoint=endpoint)
    assert (caught.value.exit_code, caught.value.data["newest"]) == (4, 3)
    pull(HERE, lambda _: output, replace(remembering, allow_older=True), endpoint=endpoint)
    with refused("pull-older-than-before"):  # it is allowed once
        pull(HERE, lambda _: output, remembering, endpoint=endpoint)
    pull(HERE, lambda _: tmp_path / "elsewhere", PullTerms(home=tmp_path / "other"), endpoint=endpoint)


def test_other_bytes_under_the_number_of_a_version_are_refused(endpoint: str, folder: Path, tmp_path: Path) -> None:
    remembering = PullTerms(home=tmp_path / "home")
    push(VERSION, folder, HERE, endpoint=endpoint)
    pull(HERE, lambda _: tmp_path / "pulled", remembering, endpoint=endpoint)
    lies_there(artifact="sha256:" + "1" * 64)
    with refused("pull-bytes-differ"):
        pull(HERE, lambda _: tmp_path / "again", remembering, endpoint=endpoint)


def test_a_signature_holds_for_one_repository(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    private, public, _ = keys
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    FakeHub.repositories["thief/mood"] = dict(FakeHub.repositories["owner/mood"])
    with refused("signature-of-other-place"):
        pull(HubPlace("thief/mood"), lambda _: tmp_path / "pulled", PullTerms(key=public), endpoint=endpoint)
    assert not (tmp_path / "pulled").exists()


def test_an_unsigned_version_does_not_shut_out_signed_ones(
    endpoint: str, folder: Path, tmp_path: Path, keys: tuple[Path, Path, Path]
) -> None:
    private, public, _ = keys
    home = tmp_path / "home"
    newer = replace(VERSION, version=9)
    write_files(newer, pack_embedding(Z, embedding_facts(newer, "sha256:h")), tmp_path / "newer")
    push(newer, tmp_path / "newer", HERE, endpoint=endpoint)
    pull(HERE, lambda _: tmp_path / "9", PullTerms(home=home), endpoint=endpoint)
    push(VERSION, folder, HERE, key=private, endpoint=endpoint)
    pull(HERE, lambda _: tmp_path / "2", PullTerms(home=home, key=public), endpoint=endpoint)
    with pytest.raises(ConflictError):
        pull(HERE, lambda _: tmp_path / "2", PullTerms(home=home), endpoint=endpoint)
