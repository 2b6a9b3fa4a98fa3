"""What is told, how it is signed, and what becomes of messages that do not arrive."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update
from support.registry_samples import register_sample_base, running_job, sample_task, sample_version
from support.webhook_receiver import Receiver, receiving

from onboard.domain.webhook import Delivery, EndpointState, Webhooks
from onboard.errors import ConflictError
from onboard.operations.prometheus import make_registry
from onboard.operations.webhooks import deliver
from onboard.operations.webhooks.deliver import GIVE_UP_SECONDS, LEASE, retry_seconds
from onboard.operations.webhooks.signing import headers_of
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.webhook_tables import WebhookDeliveryRow, WebhookEventRow
from onboard.testing import MemoryDoorbell
from workers.reconciler import reconcile

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
DAY = 86_400.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def hooks(*urls: str, secrets: str = SECRET) -> Webhooks:
    return Webhooks.parse(" ".join(urls), "127.0.0.1", secrets, insecure=True)


def publish(database: Database, *, latest: bool = True) -> None:
    job = running_job(database)
    with database.write() as session:
        draft = sample_version(job=job.id)
        VersionRepository(session).publish(draft, sample_task(), attempt=job.attempt, result={}, move_latest=latest)


def move(database: Database, alias: str = "production") -> None:
    with database.write() as session:
        AliasRepository(session).move("colours", alias, 1, actor="ops", reason="promoted")


def verify_of_the_docs() -> Any:
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "webhooks.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names["verify"]


def test_a_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks specification's own libraries."""
    delivery = Delivery("msg_p5jXN8AQM9LWM0D4loKWxJek", "", "", 0.0, {}, 0)
    (key,) = hooks().keys
    headers = headers_of(delivery, b'{"test": 2432232314}', 1614265330, [key])
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_eight_lines_of_the_documentation_accept_what_is_sent_and_nothing_else(
    database: Database, receiver: Receiver
) -> None:
    register_sample_base(database)
    publish(database)
    deliver(database, hooks(receiver.url, secrets=f"{OTHER} {SECRET}"), "w1")
    verify, message = verify_of_the_docs(), receiver.messages[0]
    verify(SECRET, message.headers, message.body)
    verify(OTHER, message.headers, message.body)
    with pytest.raises(ValueError, match="signature"):
        verify(SECRET, message.headers, message.body + b" ")
    with pytest.raises(ValueError, match="signature"):
        verify("whsec_" + "A" * 32, message.headers, message.body)
    redated = {**message.headers, "webhook-timestamp": str(int(time.time()) + 1)}
    with pytest.raises(ValueError, match="signature"):
        verify(SECRET, redated, message.body)


def test_a_message_that_is_sent_again_by_somebody_else_is_too_old_after_five_minutes() -> None:
    verify, body, now = verify_of_the_docs(), b'{"type":"alias.moved"}', int(time.time())
    delivery = Delivery("msg_1", "", "", 0.0, {}, 0)
    for seconds in (-280, 280):
        verify(SECRET, headers_of(delivery, body, now + seconds, hooks().keys), body)
    for seconds in (-320, 320):
        with pytest.raises(ValueError, match="too old"):
            verify(SECRET, headers_of(delivery, body, now + seconds, hooks().keys), body)


def test_a_publication_and_every_move_of_an_alias_are_told(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database)
    publish(database, latest=False)
    move(database)
    assert deliver(database, hooks(receiver.url), "w1") == 4
    documents = [message.document for message in receiver.messages]
    kinds = sorted(
        (document["type"], document["data"]["version"], document["data"].get("alias")) for document in documents
    )
    assert kinds == [
        ("alias.moved", 1, "latest"),
        ("alias.moved", 1, "production"),
        ("version.published", 1, None),
        ("version.published", 2, None),
    ]
    (promoted,) = (document for document in documents if document["data"].get("alias") == "production")
    expected = {"task": "colours", "alias": "production", "version": 1, "previous": None, "actor": "ops"}
    assert promoted["data"] == {**expected, "reason": "promoted", "names": None}
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == 4
    assert deliver(database, hooks(receiver.url), "w1") == 0


def test_what_was_rolled_back_and_what_a_base_ships_with_is_not_told(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        VersionRepository(session).add(sample_version(), sample_task())
    with pytest.raises(ConflictError):
        _move_in_vain(database)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(WebhookEventRow)) == 0


def _move_in_vain(database: Database) -> None:
    with database.write() as session:
        AliasRepository(session).move("colours", "production", 1)
        raise ConflictError("the transaction fails at its end")


def test_a_message_that_failed_is_tried_again_later_with_the_same_id_and_body(
    database: Database, receiver: Receiver
) -> None:
    register_sample_base(database)
    publish(database, latest=False)
    receiver.status = 500
    webhooks = hooks(receiver.url)
    deliver(database, webhooks, "w1")
    deliver(database, webhooks, "w1")  # the other one: after a failure the endpoint is left alone for a round
    with database.read() as session:
        (state,) = OutboxRepository(session).standing()
    name = webhooks.endpoints[0].name
    assert state == EndpointState(name, waiting=2, failing=2, given_up=0, error="127.0.0.1 answered with status 500.")
    receiver.status = 200
    _make_due(database)
    assert deliver(database, webhooks, "w1") == 2
    by_id: dict[str, set[bytes]] = {}
    for message in receiver.messages:
        by_id.setdefault(message.headers["webhook-id"], set()).add(message.body)
    assert [len(bodies) for bodies in by_id.values()] == [1, 1]
    assert len(receiver.messages) == 4
    with database.read() as session:
        assert OutboxRepository(session).standing() == []


def _make_due(database: Database) -> None:
    with database.write() as session:
        session.execute(update(WebhookDeliveryRow).values(next_at=0.0))


def _age(database: Database, seconds: float) -> None:
    with database.write() as session:
        session.execute(update(WebhookEventRow).values(at=WebhookEventRow.at - seconds))


def test_a_failing_endpoint_does_not_keep_messages_from_another(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database)
    with receiving() as broken:
        broken.status = 503
        assert deliver(database, hooks(broken.url, receiver.url), "w1") == 2
        assert len(broken.messages) == 1


def test_retries_become_rarer_and_end_after_three_days(database: Database, receiver: Receiver) -> None:
    assert [round(retry_seconds(attempts)) for attempts in (1, 2, 3, 7, 8, 500)] == [5, 20, 80, 20480, 21600, 21600]
    register_sample_base(database)
    publish(database)
    receiver.status = 500
    deliver(database, hooks(receiver.url), "w1")
    _age(database, GIVE_UP_SECONDS)
    deliver(database, hooks(receiver.url), "w1")
    assert len(receiver.messages) == 1
    with database.read() as session:
        (state,) = OutboxRepository(session).standing()
    assert (state.waiting, state.given_up) == (0, 2)
    samples = {sample.labels["state"]: sample.value for sample in _metric(database).samples}
    assert samples == {"waiting": 0, "failing": 0, "given_up": 2}


def _metric(database: Database) -> Any:
    return next(metric for metric in make_registry(database).collect() if metric.name == "onboard_webhook_deliveries")


def test_the_newest_error_is_shown_and_what_was_given_up_a_day_ago_is_not(
    database: Database, receiver: Receiver
) -> None:
    register_sample_base(database)
    publish(database)
    webhooks = hooks(receiver.url)
    for receiver.status in (503, 500):  # one message each: after a failure the endpoint is left alone for a round
        deliver(database, webhooks, "w1")
        with database.write() as session:
            session.execute(update(WebhookDeliveryRow).values(tried_at=WebhookDeliveryRow.tried_at - 60))
    with database.read() as session:
        (state,) = OutboxRepository(session).standing()
    assert state == EndpointState(webhooks.endpoints[0].name, 2, 2, 0, "127.0.0.1 answered with status 500.")
    _age(database, GIVE_UP_SECONDS)
    deliver(database, webhooks, "w1")
    with database.read() as session:
        (state,) = OutboxRepository(session).standing()
    assert (state.waiting, state.failing, state.given_up) == (0, 0, 2)
    with database.write() as session:
        session.execute(update(WebhookDeliveryRow).values(ended_at=WebhookDeliveryRow.ended_at - DAY))
        assert OutboxRepository(session).standing() == []


def test_endpoints_that_no_worker_has_any_more_are_given_up_too(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database)
    receiver.status = 500
    deliver(database, hooks(receiver.url), "w1")
    _age(database, GIVE_UP_SECONDS)
    assert reconcile(database, MemoryDoorbell(), "w1", 60)
    with database.read() as session:
        (state,) = OutboxRepository(session).standing()
    assert (state.waiting, state.given_up, state.error) == (0, 2, "127.0.0.1 answered with status 500.")


def test_what_is_given_up_is_logged_by_endpoint(
    database: Database, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    register_sample_base(database)
    publish(database)
    receiver.status = 500
    deliver(database, hooks(receiver.url), "w1")
    _age(database, GIVE_UP_SECONDS)
    deliver(database, hooks(receiver.url), "w1")
    assert f"2 messages to {hooks(receiver.url).endpoints[0].name} were given up" in caplog.text


def test_a_receiver_that_is_gone_is_not_tried_again(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database, latest=False)
    receiver.status = 410
    deliver(database, hooks(receiver.url), "w1")
    _make_due(database)
    deliver(database, hooks(receiver.url), "w1")
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == len(receiver.messages) == 2


def test_one_worker_at_a_time_delivers(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database)
    with database.write() as session:
        assert LeaseRepository(session).take(LEASE, "another", 60)
    assert deliver(database, hooks(receiver.url), "w1") == 0
    assert receiver.messages == []
    assert deliver(database, hooks(receiver.url), "another") == 2


def test_an_endpoint_that_is_set_later_hears_of_the_last_three_days_only(
    database: Database, receiver: Receiver
) -> None:
    register_sample_base(database)
    publish(database)
    assert deliver(database, hooks(), "w1") == 0
    _age(database, GIVE_UP_SECONDS)
    move(database)
    assert deliver(database, hooks(receiver.url), "w1") == 1
    assert receiver.messages[0].document["data"]["alias"] == "production"


def test_events_are_forgotten_with_their_deliveries(database: Database, receiver: Receiver) -> None:
    register_sample_base(database)
    publish(database)
    deliver(database, hooks(receiver.url), "w1")
    move(database)
    with database.write() as session:
        session.execute(update(WebhookEventRow).where(WebhookEventRow.addressed_at.is_not(None)).values(at=0.0))
        assert RetentionRepository(session).webhook_events(7 * DAY) == 2
        assert session.scalar(select(func.count()).select_from(WebhookEventRow)) == 1
        assert session.scalar(select(func.count()).select_from(WebhookDeliveryRow)) == 0
