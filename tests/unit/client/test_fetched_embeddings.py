"""What the client returns as an embedding is what was asked for, whatever network, cache and other processes do."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fake_service import FakeService, packed, problem, real_server
from support.refusals import refused

from onboard.client.answers import digest_of_file, read_embedding
from onboard.client.cache import EmbeddingCache
from onboard.domain.names import Reference
from onboard.errors import DamagedError, NotFoundError, UnavailableError
from onboard.storage.embedding import pack_embedding, read_facts, unpack_embedding


def cached_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "contents").iterdir() if path.is_file()]


def test_an_embedding_has_its_vector_digest_and_pins(service: FakeService, tmp_path: Path) -> None:
    content = service.add("paws", 3)
    embedding = service.client(tmp_path).embedding("paws")
    assert (embedding.reference, embedding.content, embedding.stale) == ("paws@v3", content, False)
    assert embedding.vector.shape == (8,)
    assert embedding.pins.backbone_digest == "sha256:b"
    assert embedding.pins.hypernetwork_version == 1
    with pytest.raises(ValueError, match="read-only"):
        embedding.vector[0] = 1.0


def test_an_embedding_that_started_from_a_mixture_names_its_parts(service: FakeService) -> None:
    content = service.add("paws", 3)
    weights = {"qqp@v1": 0.75, "mean": 0.25}
    mixed = pack_embedding(unpack_embedding(content), {**read_facts(content), "init": "mixture", "mixed_from": weights})
    asked = Reference.parse("paws@v3")
    assert read_embedding(content, asked).pins.mixed_from == {}
    pins = read_embedding(mixed, asked).pins
    assert (pins.parent, pins.mixed_from) == ("mixture", weights)


def test_an_alias_that_did_not_move_costs_a_304_and_a_version_costs_nothing(
    service: FakeService, tmp_path: Path
) -> None:
    service.add("paws", 3)
    client = service.client(tmp_path)
    first = client.embedding("paws")
    again = client.embedding("paws")
    assert service.requests[1].headers["if-none-match"] == f'"{first.file_digest}"'
    assert again.content == first.content
    assert client.embedding("paws@v3").content == first.content
    assert len(service.requests) == 2


def test_a_moved_alias_is_followed(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 1)
    client = service.client(tmp_path)
    assert client.embedding("paws").version == 1
    service.add("paws", 2)
    assert client.embedding("paws").version == 2


def test_the_cache_answers_while_the_service_is_away_and_says_so(service: FakeService, tmp_path: Path) -> None:
    content = service.add("paws", 1)
    service.client(tmp_path).embedding("paws")
    service.away = True
    embedding = service.client(tmp_path).embedding("paws@latest")
    assert (embedding.content, embedding.stale) == (content, True)
    assert not service.client(tmp_path).embedding("paws@v1").stale
    with refused("service-unreachable"):
        service.client(tmp_path).embedding("rte")


def test_one_service_never_answers_for_another(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 1)
    service.client(tmp_path).embedding("paws@v1")
    other = EmbeddingCache(tmp_path, "https://elsewhere.test")
    assert other.note("/v1/tasks/paws/embeddings/v1.safetensors") is None


def test_a_task_that_was_deleted_is_not_given_out_later(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 1)
    client = service.client(tmp_path)
    client.embedding("paws")
    service.aliases.clear()
    with pytest.raises(NotFoundError):
        client.embedding("paws")
    service.away = True
    with pytest.raises(UnavailableError):
        client.embedding("paws")


def test_a_refused_token_is_no_reason_to_use_the_cache(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 1)
    client = service.client(tmp_path)
    client.embedding("paws")
    service.troubles = [lambda _: problem(401, "sign_in", "The token was revoked.")]
    with refused("sign-in"):
        client.embedding("paws")


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "one bit of the numbers differs": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "it is another task": lambda _: packed("rte", 1),
    "it is another version": lambda _: packed("paws", 2),
    "it is cut off": lambda content: content[:-4],
    "it is no embedding": lambda _: b"<html>sign in</html>",
    "it is nothing": lambda _: b"",
}


@pytest.mark.parametrize(
    ("wrong", "own_etag"),
    # other numbers under the same name and with their own ETag are another embedding: nothing could tell
    [(spoil, own) for name, spoil in WRONG.items() for own in (False, True) if not (own and "one bit" in name)],
)
def test_bytes_that_are_not_what_was_asked_for_are_refused_and_not_kept(
    service: FakeService, tmp_path: Path, wrong: Callable[[bytes], bytes], own_etag: bool
) -> None:
    right = service.add("paws", 1)
    came = wrong(right)
    etag = digest_of_file(came if own_etag else right)
    service.troubles = [lambda _: httpx.Response(200, content=came, headers={"ETag": f'"{etag}"'})]
    client = service.client(tmp_path)
    with pytest.raises(DamagedError):
        client.embedding("paws@v1")
    assert client.embedding("paws@v1").content == right


def test_without_an_etag_nothing_is_believed(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [lambda _: httpx.Response(200, content=packed("paws", 1))]
    with refused("received-digest-differs", promised="no digest"):
        service.client(tmp_path).embedding("paws@v1")


def test_damage_on_the_disk_is_found_and_mended(service: FakeService, tmp_path: Path) -> None:
    right = service.add("paws", 1)
    client = service.client(tmp_path)
    client.embedding("paws@v1")
    (file,) = cached_files(tmp_path)
    file.write_bytes(right[:-1] + b"x")
    assert client.embedding("paws@v1").content == right
    assert cached_files(tmp_path)[0].read_bytes() == right


def test_notes_that_are_no_notes_count_as_none(service: FakeService, tmp_path: Path) -> None:
    right = service.add("paws", 1)
    client = service.client(tmp_path)
    client.embedding("paws@v1")
    for note in (tmp_path / "notes").rglob("*"):
        if note.is_file():
            note.write_bytes(b'["\xff')
    assert client.embedding("paws@v1").content == right


def test_the_cache_stays_below_its_limit_and_the_least_used_leave(service: FakeService, tmp_path: Path) -> None:
    size = len(packed("task1", 1))
    client = service.client(tmp_path, cache_bytes=4 * (size + 400))
    for number in range(1, 4):
        service.add(f"task{number}", 1)
        client.embedding(f"task{number}@v1")
    for file in cached_files(tmp_path):
        os.utime(file, (1, 1))
    for note in (tmp_path / "notes").rglob("*"):
        os.utime(note)
    client.embedding("task2@v1")
    for number in range(4, 6):
        service.add(f"task{number}", 1)
        client.embedding(f"task{number}@v1")
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) <= 4 * (size + 400)
    service.requests.clear()
    client.embedding("task2@v1")
    assert service.requests == []


def test_a_cache_that_cannot_be_written_is_passed_over(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 1)
    (tmp_path / "file").write_text("")
    client = service.client(tmp_path / "file" / "below")
    assert client.embedding("paws").version == 1
    assert client.embedding("paws").version == 1


def test_all_embeddings_come_by_one_request_when_nothing_has_changed(service: FakeService, tmp_path: Path) -> None:
    service.add("paws", 2)
    service.add("rte", 1)
    client = service.client(tmp_path)
    first = client.embeddings()
    assert {task: embedding.version for task, embedding in first.items()} == {"paws": 2, "rte": 1}
    service.requests.clear()
    client.embeddings()
    assert service.asked() == ["/v1/embeddings"]
    service.away = True
    assert all(embedding.stale for embedding in client.embeddings().values())


def test_names_that_are_no_names_are_never_sent(service: FakeService, tmp_path: Path) -> None:
    from onboard.errors import InputError

    for name in ("../jobs", "a/b", "paws@../../tokens", "%2e%2e", "PAWS", "", "paws@", "a" * 65, "paws\n"):
        with pytest.raises(InputError):
            service.client(tmp_path).embedding(name)
    assert service.requests == []


def test_many_embeddings_that_are_not_in_the_cache_come_by_two_requests(service: FakeService, tmp_path: Path) -> None:
    contents = {f"task{number}": service.add(f"task{number}", 1) for number in range(40)}
    client = service.client(tmp_path)
    assert {task: embedding.content for task, embedding in client.embeddings().items()} == contents
    assert service.asked() == ["/v1/embeddings"] * 2
    service.add("task7", 2)
    service.requests.clear()
    assert client.embeddings()["task7"].version == 2
    assert service.asked() == ["/v1/embeddings", "/v1/tasks/task7/embeddings/v2.safetensors"]
    service.away = True
    assert client.embedding("task3@v1").content == contents["task3"]


@pytest.mark.parametrize("wrong", [name for name in WRONG if "another" not in name] + ["it is another task"])
def test_a_wrong_file_among_many_is_refused(service: FakeService, tmp_path: Path, wrong: str) -> None:
    for number in range(20):
        service.add(f"task{number}", 1)
    listed = json.loads(service(httpx.Request("GET", "https://service.test/v1/embeddings?files=true")).content)
    spoilt = next(entry for entry in listed["embeddings"] if entry["task"] == "task5")
    spoilt["file"] = base64.b64encode(WRONG[wrong](service.versions["task5", 1])).decode()
    plain = service(httpx.Request("GET", "https://service.test/v1/embeddings"))
    service.troubles = [lambda _: plain, lambda _: httpx.Response(200, json=listed)]
    client = service.client(tmp_path)
    with pytest.raises(DamagedError):
        client.embeddings()
    assert client.embedding("task5@v1").content == service.versions["task5", 1]


def test_an_answer_of_the_cache_says_how_old_it_is(
    service: FakeService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    service.add("paws", 1)
    client = service.client(tmp_path)
    client.embeddings()
    client.embedding("paws")
    now += 3600
    assert client.embedding("paws").age_seconds == 0  # a 304 makes it young again
    now += 7200
    service.away = True
    embedding = client.embedding("paws")
    assert (embedding.stale, embedding.age_seconds) == (True, 7200)
    assert client.embeddings()["paws"].age_seconds == 10_800
    first, second = (record.getMessage() for record in caplog.records if record.name == "onboard.client.fetching")
    assert first.startswith("paws@latest is paws@v1 from the cache, 2 h old: The service at https://service.test")
    assert second.startswith("The list of embeddings is from the cache, 3 h old")


def test_a_note_that_leads_to_another_embedding_is_not_believed(service: FakeService, tmp_path: Path) -> None:
    right = service.add("paws", 1)
    client = service.client(tmp_path)
    client.embedding("paws@v1")
    cache = EmbeddingCache(tmp_path, "https://service.test")
    address = "/v1/tasks/paws/embeddings/v1.safetensors"
    for other in (packed("rte", 1), packed("paws", 2)):
        cache.keep(address, f'"{digest_of_file(other)}"', other)
        assert client.embedding("paws@v1").content == right
    cache.keep(address, '"sha256:of something else"', right)
    service.requests.clear()
    assert client.embedding("paws@v1").content == right
    assert len(service.requests) == 1


READER = """
import random, sys
from pathlib import Path
from onboard.client import Onboard

url, folder, seed = sys.argv[1:]
chance = random.Random(int(seed))
with Onboard(url, "secret", cache=Path(folder), cache_bytes=20_000) as client:
    for _ in range(150):
        task = f"task{chance.randrange(12)}"
        found = client.embedding(f"{task}@v1")
        print(task, found.task, found.file_digest)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        if files and chance.random() < 0.3:
            victim = chance.choice(files)
            try:
                victim.write_bytes(victim.read_bytes()[:-3] + b"odd")
            except OSError:
                pass
"""


def test_processes_share_a_cache_that_is_damaged_again_and_again(service: FakeService, tmp_path: Path) -> None:
    digests = {f"task{number}": digest_of_file(service.add(f"task{number}", 1)) for number in range(12)}
    with real_server(service) as url:
        command = [sys.executable, "-c", READER, url, str(tmp_path / "cache")]
        readers = [
            subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for seed in range(3)
        ]
        ended = [(*reader.communicate(timeout=120), reader.returncode) for reader in readers]
    assert [(code, errors) for _, errors, code in ended] == [(0, "")] * 3
    answers = [line.split() for said, _, _ in ended for line in said.splitlines()]
    assert len(answers) == 450
    assert [answer for answer in answers if answer[0] != answer[1] or answer[2] != digests[answer[0]]] == []
