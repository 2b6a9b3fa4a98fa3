"""Rate limits of two servers that share a real Redis, and of one whose Redis is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from support.browsing import app_without_base
from support.real_door import answering
from support.real_services import RedisServer, free_port
from support.refusals import require

from onboard.api.limits import RateLimit
from onboard.broker.shared_limits import SharedBuckets
from onboard.errors import RateLimitError
from onboard.operations.access import create_token
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

pytestmark = pytest.mark.services


@pytest.fixture
def buckets(redis_server: RedisServer) -> Iterator[list[SharedBuckets]]:
    """Those of two servers."""
    redis_server.wipe()
    opened = [SharedBuckets(redis_server.url) for _ in range(2)]
    yield opened
    for each in opened:
        each.close()


def grown(services: Services, database_url: str, broker_url: str, requests_per_minute: int) -> Settings:
    """Settings of a server on PostgreSQL and Redis."""
    there = {"database_url": database_url, "broker_url": broker_url, "requests_per_minute": requests_per_minute}
    return services.settings.model_copy(update=there)


def test_two_servers_count_the_requests_of_a_token_together(
    services: Services, postgres_url: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_server.wipe()
    settings = grown(services, postgres_url, redis_server.url, 10)
    with closing(open_services(settings)) as opened:
        secret, other = (create_token(opened.database, name, ["read"])[1] for name in ("one", "other"))

    def ask(port: int, token: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{port}/v1/me", headers={"Authorization": f"Bearer {token}"})

    first, second = (app_without_base(services, monkeypatch, settings) for _ in range(2))
    with answering(first) as here, answering(second) as there:
        answers = [ask((here, there)[number % 2], secret) for number in range(14)]
        assert 3 <= [answer.status_code for answer in answers].count(429) <= 4  # one comes back every six seconds
        refused = next(answer for answer in answers if answer.status_code == 429)
        require(refused.json(), "too-many-requests", per_minute=10)
        assert 1 <= int(refused.headers["retry-after"]) <= 6
        assert ask(there, other).status_code == 200


def test_whoever_fails_at_one_server_is_refused_by_the_other(buckets: list[SharedBuckets]) -> None:
    here, there = (RateLimit(2, shared=each, name="failures") for each in buckets)
    here.take("192.0.2.1")
    there.require("192.0.2.1")
    there.take("192.0.2.1")
    for limit in (here, there):
        with pytest.raises(RateLimitError) as refused:
            limit.require("192.0.2.1")
        assert 1 <= refused.value.data["retry_after_seconds"] <= 30
    RateLimit(2, shared=buckets[0], name="requests").take("192.0.2.1")  # another limit
    assert there.waits
    assert not RateLimit(0, shared=buckets[0]).waits


def test_without_redis_a_server_counts_alone_says_so_once_and_returns(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    with RedisServer() as redis:
        shared = SharedBuckets(redis.url, lambda: now[0])
        limit = RateLimit(3, lambda: now[0], shared=shared)
        limit.take("me")
        redis.kill()
        limit.take("me")
        limit.take("me")
        with pytest.raises(RateLimitError):
            limit.take("me")  # the request that Redis counted is not forgotten
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        redis.start()
        now[0] = 60.0
        for _ in range(3):
            limit.take("me")
        with pytest.raises(RateLimitError):
            RateLimit(3, shared=shared).take("me")
        assert len(caplog.records) == 2
        shared.close()


def test_a_redis_that_never_was_there_fails_no_request(
    services: Services, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = grown(services, postgres_url, f"redis://:secret@127.0.0.1:{free_port()}/0", 3)
    with answering(app_without_base(services, monkeypatch, settings)) as port:
        codes = [httpx.get(f"http://127.0.0.1:{port}/login").status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]


@pytest.mark.parametrize("value", ["required", "CERT_REQUIRED", "none", "CERT_NONE"])
def test_every_url_of_a_broker_with_tls_can_be_read(value: str) -> None:
    shared = SharedBuckets(f"rediss://:secret@127.0.0.1:{free_port()}/3?ssl_cert_reqs={value}")
    assert shared.wait("requests", "me", 1, take=True) is None
    shared.close()
