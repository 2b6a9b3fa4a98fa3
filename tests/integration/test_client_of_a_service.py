"""The client against a real server process: embeddings, aliases, jobs and logs, also where an answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from support.served_past import Remote

from onboard.bases import Base
from onboard.client import Onboard
from onboard.errors import ConflictError, InputError, NotAllowedError, NotFoundError, PreconditionFailedError


@pytest.fixture
def client(remote: Remote, tmp_path: Path) -> Iterator[Onboard]:
    with Onboard(remote.service.url, remote.service.token, cache=tmp_path / "cache") as opened:
        yield opened


def test_an_embedding_is_fetched_verified_and_then_answered_from_the_cache(client: Onboard, tiny_base: Base) -> None:
    name = tiny_base.sources[0].name
    embedding = client.embedding(name)
    assert embedding.vector.tolist() == tiny_base.embeddings[name].tolist()
    assert embedding.pins.base_digest == tiny_base.digest
    assert client.embedding(name).content == embedding.content
    assert {source.name for source in tiny_base.sources} | {"mood"} <= set(client.embeddings())


def test_an_alias_is_made_moved_and_moved_back(client: Onboard) -> None:
    assert client.promote("mood@v1", "production").previous is None
    assert client.promote("mood@v2", "production").previous == 1
    assert client.embedding("mood@production").version == 2
    moved = client.rollback("mood", "production")
    assert (moved.version, moved.reason, moved.actor) == (1, "rollback", client.me().actor)
    with pytest.raises(NotFoundError):
        client.promote("mood@v9", "production")


@pytest.mark.parametrize("stolen", [False, True])
def test_a_promotion_whose_answer_was_lost_is_known_as_ours_and_another_one_is_not(
    remote: Remote, client: Onboard, tmp_path: Path, stolen: bool
) -> None:
    alias = f"lost-{stolen}".lower()
    client.promote("mood@v1", alias)
    transport = LostAnswers(lambda: stolen and client.promote("mood@v1", alias))
    settings = {"cache": tmp_path, "transport": transport, "sleep": lambda _: None}
    with Onboard(remote.service.url, remote.service.token, **settings) as unlucky:
        if stolen:
            with pytest.raises(PreconditionFailedError):
                unlucky.promote("mood@v2", alias)
        else:
            moved = unlucky.promote("mood@v2", alias)
            assert (moved.version, moved.previous) == (2, 1)
    assert transport.lost == 1


class LostAnswers(httpx.BaseTransport):
    """The network, which loses the answer to the first change; meanwhile something else may happen."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._network = httpx.HTTPTransport()
        self._meanwhile = meanwhile
        self.lost = 0

    def close(self) -> None:
        self._network.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._network.handle_request(request)
        if request.method != "PUT" or self.lost:
            return response
        self.lost += 1
        response.read()
        response.close()
        self._meanwhile()
        raise httpx.ReadError("cut off", request=request)


def test_a_job_is_submitted_once_cancelled_and_queued_again(client: Onboard, remote: Remote) -> None:
    data = remote.service.place.write("moods.jsonl", [{"text": f"text {n}", "label": n % 2} for n in range(40)])
    job = client.submit(data, key="one")
    assert client.submit(data, key="one").id == job.id
    assert client.cancel(job.id).state == "cancelled"
    with pytest.raises(ConflictError):
        client.cancel(job.id)
    assert client.retry(job.id).state == "queued"


def test_without_a_good_token_nothing_is_told(remote: Remote, tmp_path: Path) -> None:
    for token in ("", "wrong"):
        with Onboard(remote.service.url, token, cache=tmp_path) as client, pytest.raises(NotAllowedError):
            client.embedding("sst2")


def test_a_long_log_comes_in_parts(client: Onboard, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/v1/jobs/{remote.jobs['running']}/logs"
    whole = client.get(path)
    assert (whole["more"], [event["worker"] for event in whole["events"]][-1]) == (False, "w1")
    after = client.get(path, cursor=whole["next"])
    assert (after["events"], after["lines"], after["next"]) == ([], [], whole["next"])
    for odd in ("", "x", "[]", "[1,[0,0],3]", "[-1,[0,0],{}]", "[1,[0],{}]", '[1,[0,"0"],{}]', "[" * 9000):
        with pytest.raises(InputError):
            client.get(path, cursor=odd)
