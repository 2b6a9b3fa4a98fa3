"""What the auditor of the answers lets pass, and what it finds wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.published import add_version, embedding_of

from bench.chaos.auditor import Answer, Auditor
from onboard.bases import Base
from onboard.contract.versions import VersionDocument
from onboard.domain.task import EmbeddingVersion
from onboard.registry.services import Services

PROBLEM = {"content-type": "application/problem+json"}
Change = Callable[[Answer], Answer]


@pytest.fixture
def version(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    return add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(1))


@pytest.fixture
def file(tiny_services: Services, version: EmbeddingVersion) -> Answer:
    """embedding.safetensors, as it has to be."""
    tag = {"etag": f'"{version.artifact}"'}
    return Answer("mood", True, "", False, 200, tag, tiny_services.artifacts.get(version.artifact))


@pytest.fixture
def document(version: EmbeddingVersion) -> Answer:
    """The same version as JSON."""
    body = json.dumps({**VersionDocument.of(version).to_json(), "z": embedding_of(1).tolist()}).encode()
    return Answer("mood", False, "", False, 200, {"etag": f'"{version.artifact}"'}, body)


def everything(document: Answer) -> Answer:
    body = json.dumps({"ref": "latest", "embeddings": [json.loads(document.body)]}).encode()
    return replace(document, task=None, headers={"etag": '"all"'}, body=body)


def refused(status: int, code: str, *, known: bool = False, **headers: str) -> Answer:
    body = json.dumps({"code": code}).encode()
    return Answer("mood", True, "", known, status, {**PROBLEM, **headers}, body)


def wrong(auditor: Auditor, services: Services) -> list[str]:
    return [violation.what for violation in auditor.verdict(services)[0]]


def test_right_answers_are_counted_and_nothing_is_found(
    tiny_services: Services, file: Answer, document: Answer
) -> None:
    auditor = Auditor()
    assert not auditor.known("mood")
    unchanged = replace(file, status=304, sent=file.headers["etag"], body=b"")
    later = refused(503, "unavailable", **{"retry-after": "2"})
    for answer in (refused(404, "not_found"), file, document, everything(document), unchanged, later):
        auditor.take(answer, 0.5)
    assert auditor.known("mood")
    violations, facts = auditor.verdict(tiny_services)
    assert violations == []
    assert facts == {
        "answers": {"200": 3, "304": 1, "404": 1, "503": 1}, "embeddings_verified": 3, "versions_seen": 1,
        "longest_seconds": 0.5,
    }  # fmt: skip


def swapped(answer: Answer, old: bytes, new: bytes) -> Answer:
    assert old in answer.body
    return replace(answer, body=answer.body.replace(old, new))


FILES: dict[str, Change] = {
    "a byte is another": lambda file: replace(file, body=file.body[:-1] + bytes([file.body[-1] ^ 1])),
    "it is cut off": lambda file: replace(file, body=file.body[:-1]),
    "the ETag is another": lambda file: replace(file, headers={"etag": '"sha256:0"'}),
    "there is no ETag": lambda file: replace(file, headers={}),
    "it is of another task": lambda file: replace(file, task="joke"),
    "it is unchanged, unasked": lambda file: replace(file, status=304, body=b""),
    "it is unchanged, and another": lambda file: replace(file, status=304, sent='"sha256:0"', body=b""),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_not_what_its_etag_says_is_found(tiny_services: Services, file: Answer, what: str) -> None:
    auditor = Auditor()
    assert auditor.take(FILES[what](file), 0.1) == []
    assert len(wrong(auditor, tiny_services)) == 1


def test_numbers_that_have_another_digest_are_found(tiny_services: Services, document: Answer) -> None:
    embedding = json.loads(document.body)
    embedding["z"][0] += 0.5
    auditor = Auditor()
    auditor.take(replace(document, body=json.dumps(embedding).encode()), 0.1)
    auditor.take(everything(replace(document, body=json.dumps(embedding).encode())), 0.1)
    assert len(wrong(auditor, tiny_services)) == 2


REFUSED: dict[str, Answer] = {
    "a fault": refused(500, "internal"),
    "no problem": replace(refused(503, "unavailable", **{"retry-after": "2"}), headers={"content-type": "text/html"}),
    "without Retry-After": refused(503, "unavailable"),
    "gone again": refused(404, "not_found", known=True),
    "damaged": refused(500, "damaged"),
    "not let in": refused(401, "sign_in"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_that_is_not_clean_is_found(tiny_services: Services, what: str) -> None:
    auditor = Auditor()
    auditor.take(REFUSED[what], 0.1)
    assert len(wrong(auditor, tiny_services)) == 1


def test_one_version_with_two_contents_is_found(tiny_services: Services, file: Answer, document: Answer) -> None:
    embedding: dict[str, Any] = json.loads(document.body)
    auditor = Auditor()
    auditor.take(file, 0.1)
    other = json.dumps({**embedding, "artifact": "sha256:other"}).encode()
    auditor.take(replace(document, headers={"etag": '"sha256:other"'}, body=other), 0.1)
    assert ["another one than before" in what for what in wrong(auditor, tiny_services)] == [True]


def test_one_etag_with_two_bodies_is_found(tiny_services: Services, document: Answer) -> None:
    whole = everything(document)
    auditor = Auditor()
    auditor.take(whole, 0.1)
    auditor.take(replace(whole, body=whole.body + b" "), 0.1)
    assert ["two bodies" in what for what in wrong(auditor, tiny_services)] == [True]


def test_a_version_that_the_registry_does_not_hold_is_found(tiny_services: Services, document: Answer) -> None:
    embedding = {**json.loads(document.body), "version": 7}
    auditor = Auditor()
    auditor.take(replace(document, body=json.dumps(embedding).encode()), 0.1)
    assert ["mood@v7" in what for what in wrong(auditor, tiny_services)] == [True]


def test_a_service_that_still_answers_with_an_older_version_when_all_is_quiet_is_found(
    tiny_services: Services, tiny_base: Base, file: Answer
) -> None:
    auditor = Auditor()
    auditor.end("mood", auditor.take(file, 0.1))
    auditor.end("joke", [])
    assert wrong(auditor, tiny_services) == []
    add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(2))
    assert ["mood@latest is v2" in what for what in wrong(auditor, tiny_services)] == [True]


def test_no_answer_at_all_is_found(tiny_services: Services) -> None:
    auditor = Auditor()
    auditor.unanswered("mood", ConnectionResetError())
    violations, facts = auditor.verdict(tiny_services)
    assert (len(violations), facts["answers"]) == (1, {"none": 1})
