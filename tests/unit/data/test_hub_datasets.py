"""`hf://NAME[/CONFIG]` against a small hub on this machine, and against none."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.fake_hub import COMMIT, HubHandler, hub_of
from support.refusals import refused

from onboard.data import hub
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.data.task_name import task_name_of
from onboard.domain.hub_terms import HubTerms
from onboard.errors import DatasetError, InputError, NotAllowedError, NotFoundError, UnavailableError


def parquet(labels: list[int], first: int = 0) -> bytes:
    features = {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}
    schema = pa.schema([("text", pa.string()), ("label", pa.int64())], {b"huggingface": json.dumps(features).encode()})
    rows = [{"text": f"text {first + i}", "label": label} for i, label in enumerate(labels)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


def card(files: str, more: str = "") -> bytes:
    return f"---\nconfigs:\n- config_name: default\n  data_files: {files}\n{more}---\n# A dataset\n".encode()


CSV = b"text,label\na,0\nb,1\nc,0\n"
HELD = b"text,label\nd,0\ne,1\nf,0\n"
JSONL = b'{"text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n'
CARD = b"""---
configs:
- config_name: first
  data_files:
  - split: train
    path: a/good.csv
  - split: validation
    path: a/held.csv
- config_name: second
  data_files: b.jsonl
dataset_info:
- config_name: first
  features:
  - name: text
    dtype: string
  - name: label
    dtype:
      class_label:
        names:
          '0': neg
          '1': pos
- config_name: second
  features:
  - name: text
    dtype: string
  - name: label
    dtype: string
---
"""


def photos() -> bytes:
    features = {"info": {"features": {"image": {"_type": "Image"}, "text": {"_type": "Image"}}}}
    photo = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("text", photo), ("caption", pa.string()), ("label", pa.string())])
    rows = [{"text": {"bytes": b"x", "path": None}, "caption": "a cat", "label": "cat"}]
    buffer = io.BytesIO()
    described = schema.with_metadata({b"huggingface": json.dumps(features).encode()})
    pq.write_table(pa.Table.from_pylist(rows, schema=described), buffer)
    return buffer.getvalue()


PHOTOS = photos()


class FakeHub(HubHandler):
    """Serves the repositories below the way the hub's API and file routes do."""

    converted: ClassVar[dict[str, dict[str, bytes]]] = {
        "owner/reviews": {
            "default/train/0000.parquet": parquet([0, 1] * 4),
            "default/train/0001.parquet": parquet([1, 0] * 4, first=100),
            "default/validation/0000.parquet": parquet([0, 1], first=200),
            "default/test/0000.parquet": parquet([-1, -1], first=300),
        },
        "glue": {f"{name}/train/0000.parquet": parquet([0, 1]) for name in ("cola", "sst2")},
    }
    plain: ClassVar[dict[str, dict[str, bytes]]] = {
        "owner/fresh": {
            "README.md": b"# fresh",
            "data/train-00000-of-00001-abc.parquet": parquet([0, 1]),
            "data/dev-00000-of-00001.parquet": parquet([0, 1], first=9),
        },
        "owner/images": {"train.zip": b"zip"},
        "owner/testonly": {"test.parquet": parquet([0, 1])},
        "elsewhere/moved": {"train.parquet": parquet([0, 1])},
        "owner/named": {"README.md": CARD, "a/good.csv": CSV, "a/held.csv": HELD, "b.jsonl": JSONL, "later.csv": CSV},
        "owner/evil": {"README.md": card("http://127.0.0.1:1/secret.csv"), "train.csv": CSV},
        "owner/climbs": {"README.md": card("../../../etc/*.csv"), "train.csv": CSV},
        "owner/shards": {f"data/train-{i:05}-of-00003.parquet": parquet([0, 1], first=i * 10) for i in range(3)},
        "owner/photos": {"train.parquet": PHOTOS},
    }
    moved: ClassVar[dict[str, str]] = {"owner/old": "elsewhere/moved"}
    tokens: ClassVar[set[str | None]] = set()

    def do_GET(self) -> None:
        self.answer(body=True)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def answer(self, *, body: bool) -> None:
        self.tokens.add(self.headers["Authorization"])
        path = unquote(self.path.partition("?")[0])
        if path.startswith("/api/datasets/"):
            return self.answer_info(path.removeprefix("/api/datasets/"))
        repository, _, rest = path.removeprefix("/datasets/").partition("/resolve/")
        name = rest.partition("/")[2]
        files = self.converted.get(repository) or self.plain[repository]
        if name not in files:
            return self.send(404, b"", {"X-Error-Code": "EntryNotFound", "Content-Length": "0"})
        data = files[name]
        headers = {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        return self.send(200, data if body else b"", headers | {"Content-Length": str(len(data))})

    def answer_info(self, path: str) -> None:
        repository, _, revision = path.partition("/revision/")
        repository = self.moved.get(repository, repository)
        if repository == "owner/gated":
            return self.send(403, b"{}", {"X-Error-Code": "GatedRepo", "Content-Length": "2"})
        if repository not in self.converted | self.plain:
            return self.send(404, b"{}", {"X-Error-Code": "RepoNotFound", "Content-Length": "2"})
        if revision == "v1":
            revision = ""
        known = {"": self.plain, "refs/convert/parquet": self.converted}
        files = known.get(revision, {}).get(repository)
        if files is None:
            return self.send(404, b"{}", {"X-Error-Code": "RevisionNotFound", "Content-Length": "2"})
        siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
        data = json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode()
        return self.send(200, data, {"Content-Type": "application/json", "Content-Length": str(len(data))})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    FakeHub.tokens.clear()
    with hub_of(FakeHub, monkeypatch) as address:
        yield address


def test_splits_and_shards_are_fetched_and_an_unlabelled_test_split_is_left_out(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = hub.fetch("hf://owner/reviews", endpoint, tmp_path)
    assert {split: len(paths) for split, paths in fetched.splits.items()} == {"train": 2, "validation": 1, "test": 1}
    monkeypatch.setattr(hub, "fetch", lambda *_, **__: fetched)
    checked = read_dataset("hf://owner/reviews")
    assert checked.report.rows == {"train": 16, "validation": 2, "test": 0}
    assert checked.dataset.labels == ("neg", "pos")
    assert checked.report.revision == COMMIT
    assert [finding.code for finding in checked.report.warnings] == ["unlabelled_split"]


def test_a_dataset_that_the_hub_did_not_convert_is_read_from_its_own_parquet(endpoint: str, tmp_path: Path) -> None:
    assert set(hub.fetch("hf://owner/fresh", endpoint, tmp_path).splits) == {"train", "validation"}


def test_two_parts_are_owner_and_name_or_name_and_configuration(endpoint: str, tmp_path: Path) -> None:
    fetched = hub.fetch("hf://glue/sst2", endpoint, tmp_path)
    assert (fetched.repository, fetched.config) == ("glue", "sst2")


@pytest.fixture
def read_here(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Checked]:
    """Reads a dataset of this hub as `onboard check` does."""
    fetch = hub.fetch
    monkeypatch.setattr(hub, "fetch", lambda source, _, *more, **named: fetch(source, endpoint, *more, **named))

    def read(source: str, **options: Any) -> Checked:
        return read_dataset(source, ReadOptions(suspects=False, **options))

    return read


def test_the_card_says_which_files_a_configuration_is_of_and_what_its_labels_are_called(read_here) -> None:
    checked = read_here("hf://owner/named/first")
    assert {row.text_a: row.label for row in checked.dataset.train} == {"a": "neg", "b": "pos", "c": "neg"}
    assert checked.report.rows_read["validation"] == 3
    assert read_here("hf://owner/named/second").dataset.labels == ("x", "y")


def test_a_revision_is_read_where_one_is_named(read_here) -> None:
    assert read_here("hf://owner/named/second@v1").dataset.labels == ("x", "y")
    assert task_name_of("hf://owner/named@v1") == "named"
    with refused("unknown-hub-revision"):
        read_here("hf://owner/named/second@v2")


def test_files_of_the_hub_are_named_as_the_hub_names_them(read_here) -> None:
    with pytest.raises(DatasetError) as caught:
        read_here("hf://owner/photos")
    (problem,) = caught.value.data["problems"]
    assert (problem["file"], problem["code"]) == ("train.parquet", "text_type")
    assert "an image in the field 'text'" in problem["message"]
    assert "caption" in problem["remedy"]
    assert "hf://owner/photos" not in problem["file"]


@pytest.mark.parametrize("name", ["evil", "climbs"])
def test_a_card_that_names_files_elsewhere_is_not_followed(name, read_here) -> None:
    with refused("folder-files-remote"):
        read_here(f"hf://owner/{name}")


def test_of_a_large_training_split_the_first_files_are_read_and_the_rest_is_told(read_here, monkeypatch) -> None:
    size = len(FakeHub.plain["owner/shards"]["data/train-00000-of-00003.parquet"])
    monkeypatch.setattr(hub, "MAX_FILE_BYTES", 2 * size + size // 2)
    checked = read_here("hf://owner/shards")
    assert checked.report.rows["train"] == 4
    (finding,) = [finding for finding in checked.report.warnings if finding.code == "capped_split"]
    assert "2 of the 3 files" in finding.message


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("hf://glue", InputError, "cola, sst2"),
        ("hf://glue/qqp", InputError, "cola, sst2"),
        ("hf://owner/reviews/french", InputError, "default"),
        ("hf://owner/named", InputError, "first, second"),
        ("hf://owner/named/third", InputError, "first, second"),
        ("hf://owner/named@../x", InputError, "@v1"),
        ("hf://owner/images", InputError, "onboard check FILE.parquet"),
        ("hf://owner/testonly", InputError, "onboard check FILE.parquet"),
        ("hf://owner/none", NotFoundError, "hf://OWNER/NAME"),
        ("hf://owner/gated", NotAllowedError, "hf auth login"),
        ("hf://", InputError, "hf://NAME"),
        ("hf://a/b/c/d", InputError, "hf://NAME"),
        ("hf://../../etc", InputError, "hf://NAME"),
        ("hf://a..b/c", InputError, ""),
    ],
)
def test_what_cannot_be_had_is_said_with_the_way_out(source, error, words, endpoint, tmp_path) -> None:
    with pytest.raises(error) as caught:
        hub.fetch(source, endpoint, tmp_path)
    assert words in caught.value.remedy


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("hf://glue@refs/convert/parquet", "Choose one: hf://glue/CONFIG with one of cola, sst2."),
        ("hf://glue/qqp@refs/convert/parquet", "Choose one: hf://glue/CONFIG with one of cola, sst2."),
        ("hf://owner/named@v1", "Choose one: hf://owner/named/CONFIG with one of first, second."),
        ("hf://owner/named/third@v1", "Choose one: hf://owner/named/CONFIG with one of first, second."),
    ],
)
def test_a_configuration_is_advised_without_the_revision(source, advice, endpoint, tmp_path) -> None:
    with pytest.raises(InputError) as caught:
        hub.fetch(source, endpoint, tmp_path)
    assert caught.value.remedy == advice


def test_a_dataset_larger_than_the_limit_is_not_downloaded(endpoint, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hub, "MAX_FILE_BYTES", 100)
    with refused("hub-file-too-large"):
        hub.fetch("hf://owner/reviews", endpoint, tmp_path)


def test_a_card_larger_than_the_limit_is_not_downloaded(endpoint, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(hub, "MAX_CARD_BYTES", 20)
    monkeypatch.setattr(hub._Hub, "download", lambda *_: pytest.fail("it is downloaded"))
    with refused("card-too-large"):
        hub.fetch("hf://owner/climbs", endpoint, tmp_path)


def test_a_hub_that_refuses_connections_is_unavailable_at_once(tmp_path) -> None:
    started = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        hub.fetch("hf://owner/reviews", "http://127.0.0.1:9", tmp_path)
    assert time.monotonic() - started < 5
    assert "onboard check FILE.parquet" in caught.value.remedy
    assert caught.value.exit_code == 5


def test_a_hub_that_never_answers_is_unavailable_within_seconds(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("onboard.data.hub_deadline.DEADLINE_SECONDS", 0.3)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: time.sleep(2))
    started = time.monotonic()
    with refused("hub-unreachable"):
        hub.fetch("hf://owner/reviews", None, tmp_path)
    assert time.monotonic() - started < 1.5


@pytest.fixture
def signed_in(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hub, where this process has a token of its own."""
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_server")
    return endpoint


@pytest.mark.parametrize("terms", [None, HubTerms.parse("", "Owner"), HubTerms.parse("owner", "owner")])
def test_the_token_is_lent_to_whoever_runs_the_process_and_for_owners_that_are_named(
    terms: HubTerms | None, signed_in: str, tmp_path: Path
) -> None:
    assert hub.fetch("hf://owner/reviews", signed_in, tmp_path, terms).repository == "owner/reviews"
    assert FakeHub.tokens == {"Bearer hf_of_the_server"}


@pytest.mark.parametrize("owners", ["owner", "other OWNER", "*"])
def test_others_read_what_its_owner_shows_everybody_without_the_token(
    owners: str, signed_in: str, tmp_path: Path
) -> None:
    terms = HubTerms.parse(owners, "somebody")
    assert hub.fetch("hf://owner/reviews", signed_in, tmp_path, terms).repository == "owner/reviews"
    assert FakeHub.tokens == {None}


@pytest.mark.parametrize("source", ["hf://owner/reviews", "hf://owner/gated", "hf://glue/sst2", "hf://owner/none"])
@pytest.mark.parametrize("owners", ["", "other", "owner2", "reviews"])
def test_the_hub_is_not_asked_for_owners_that_are_not_allowed(
    source: str, owners: str, signed_in: str, tmp_path: Path
) -> None:
    with refused("hub-owner-not-allowed") as caught:
        hub.fetch(source, signed_in, tmp_path, HubTerms.parse(owners, owners))
    assert "ONBOARD_HUB_OWNERS=" in caught.value.remedy
    assert FakeHub.tokens == set()


def test_a_name_that_leads_to_another_owner_is_not_followed(signed_in: str, tmp_path: Path) -> None:
    fetched = hub.fetch("hf://owner/old", signed_in, tmp_path)
    assert fetched.repository == "elsewhere/moved"
    assert [(finding.code, finding.remedy) for finding in fetched.findings] == [
        ("renamed_dataset", "Write hf://elsewhere/moved")
    ]
    for terms in (HubTerms.parse("owner", ""), HubTerms.parse("", "owner")):
        with refused("hub-owner-not-allowed"):
            hub.fetch("hf://owner/old", signed_in, tmp_path / "none", terms)
    assert not list((tmp_path / "none").rglob("*.parquet"))


def test_the_token_is_not_lent_for_everybody() -> None:
    with refused("hub-token-for-everybody"):
        HubTerms.parse("", "owner *")


@pytest.mark.parametrize("keep", [False, True])
def test_what_the_hub_sent_is_gone_once_it_is_read(
    keep: bool, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is keep on purpose, for bases, nothing of the rows stays in a cache that no deletion reaches."""
    own, cache = tmp_path / "own", tmp_path / "cache"
    own.mkdir()
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_XET_CACHE"):
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(own))
    fetch, during = hub.fetch, []

    def watched(source: str, _endpoint: None, folder: Path, terms: HubTerms | None, *, keep: bool) -> hub.HubFiles:
        files = fetch(source, endpoint, folder, terms, keep=keep)
        during.extend(path for path in own.rglob("*.parquet") if not path.is_symlink())
        return files

    monkeypatch.setattr(hub, "fetch", watched)
    checked = read_dataset("hf://owner/reviews", ReadOptions(keep_downloads=keep))
    assert checked.report.rows["train"] == 16
    assert bool(during) is not keep
    assert [path for path in own.rglob("*") if path.is_file()] == []
    assert bool([path for path in cache.rglob("*") if path.is_file()]) is keep
