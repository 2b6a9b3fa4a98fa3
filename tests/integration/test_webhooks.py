"""Real workers tell a receiver of what they published, and a receiver that hangs holds no heartbeat up."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from support.real_services import wait_until
from support.real_workers import Deployment
from support.registry_samples import register_sample_base, sample_task, sample_version
from support.webhook_receiver import receiving

from onboard import local
from onboard.domain.job import JobState
from onboard.domain.webhook import Delivery
from onboard.jobs.detached import spawned
from onboard.operations.webhooks.deliver import LEASE
from onboard.operations.webhooks.signing import headers_of
from onboard.registry.aliases import AliasRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from workers.plan import WorkerPlan
from workers.run import run_worker

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def with_webhooks(deployment: Deployment, *urls: str) -> None:
    webhooks = {"webhook_urls": " ".join(urls), "webhook_hosts": "127.0.0.1", "webhook_secret": SECRET}
    settings = Settings(**{**deployment.settings.for_worker(), **webhooks, "webhook_insecure": True})
    deployment.services.close()
    deployment.settings, deployment.services = settings, open_services(settings)


def test_a_promotion_on_a_home_without_a_worker_starts_one_that_tells_of_it(embedded: Deployment) -> None:
    with receiving() as receiver:
        with_webhooks(embedded, receiver.url)
        register_sample_base(embedded.services.database)
        with embedded.services.database.write() as session:
            VersionRepository(session).add(sample_version(), sample_task())
        try:
            local.Onboard(embedded.services).promote("colours@v1", "production", if_better=False)
            assert receiver.arrived.wait(60)
        finally:
            for process in spawned:
                process.kill()
                process.wait()
    (message,) = receiver.messages
    assert (message.document["type"], message.document["data"]["alias"]) == ("alias.moved", "production")


def test_a_promotion_that_nobody_is_to_be_told_of_starts_no_worker(embedded: Deployment) -> None:
    register_sample_base(embedded.services.database)
    with embedded.services.database.write() as session:
        for _ in range(2):
            VersionRepository(session).add(sample_version(), sample_task())
    gateway = local.Onboard(embedded.services)
    gateway.promote("colours@v1", "latest", if_better=False)
    gateway.rollback("colours", "latest")
    assert embedded.rows() == []


def test_a_worker_tells_what_it_published_while_another_endpoint_hangs(embedded: Deployment) -> None:
    with receiving() as receiver, socket.create_server(("127.0.0.1", 0)) as silent:
        with_webhooks(embedded, f"http://127.0.0.1:{silent.getsockname()[1]}/", receiver.url)
        embedded.start_worker()
        job = embedded.submit()
        assert embedded.finished(job).state is JobState.SUCCEEDED
        wait_until(lambda: len(receiver.messages) == 2, what="two messages")
        (row,) = embedded.rows()
        assert row.heartbeat_age_seconds < 3.0  # of 0.5; the endpoint that hangs takes 10 from each round
    kinds = {message.document["type"] for message in receiver.messages}
    assert kinds == {"version.published", "alias.moved"}
    message = receiver.messages[0]
    delivery = Delivery(message.headers["webhook-id"], "", "", 0.0, {}, 0)
    sent = int(message.headers["webhook-timestamp"])
    expected = headers_of(delivery, message.body, sent, embedded.settings.webhooks.keys)
    assert message.headers["webhook-signature"] == expected["webhook-signature"]


def test_a_worker_that_leaves_ends_the_message_that_it_is_sending_before_it_gives_the_lease_back(
    embedded: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CeleryWorker:
        """Is told to leave as soon as the message is on its way."""

        pool, exitcode = None, 0

        def start(self) -> None:
            assert receiver.arrived.wait(60)

    class CeleryApp:
        def Worker(self, **_options: Any) -> CeleryWorker:
            return CeleryWorker()

    monkeypatch.setattr("workers.run.make_worker_app", lambda *_: CeleryApp())
    monkeypatch.setattr("workers.run.quiet_celery", lambda: None)
    monkeypatch.setattr("workers.webhooks._ROUND_SECONDS", 0.01)
    with receiving() as receiver:
        receiver.seconds = 0.5
        with_webhooks(embedded, receiver.url)
        with embedded.services.database.write() as session:
            version = VersionRepository(session).add(sample_version(), sample_task())
            AliasRepository(session).move(version.task, "production", version.version)
        assert run_worker(WorkerPlan(embedded.settings, "w1", device="cpu")) == 0
        with embedded.services.database.read() as session:
            assert OutboxRepository(session).standing() == []  # it arrived, and that is known
            assert LeaseRepository(session).holder(LEASE) is None
