"""Who descends from a task: whatever would have other numbers had it never been there."""

from __future__ import annotations

from typing import Any

from onboard.contract.deleting import Descendants
from onboard.domain.descent import Descent, Embedded, Root, TunedVersion, descent

BASE, OTHER = "sha256:base", "sha256:other"
GONE = Root("gone", frozenset({BASE}), {BASE: 10.0}, until=20.0)


def version(reference: str, *parents: str, at: float = 15.0, base: str = BASE, **more: Any) -> Embedded:
    task, _, number = reference.partition("@v")
    pinned = frozenset({more.pop("under", 1), more.pop("origin", 1)})
    return Embedded(task, int(number), base, parents or ("random",), pinned, more.pop("job", None), at, **more)


def tuned(number: int, parent: int | None, task: str | None, at: float = 15.0, base: str = BASE) -> TunedVersion:
    return TunedVersion(base, number, parent, f"{task}-tunes-{number}", task, at)


FIRST = TunedVersion(BASE, 1, None, None, None, 0.0)


def found(*facts: Embedded | TunedVersion, root: Root = GONE) -> Descent:
    embedded = [fact for fact in facts if isinstance(fact, Embedded)]
    return descent(root, embedded, [FIRST, *(fact for fact in facts if isinstance(fact, TunedVersion))])


def test_what_started_from_any_of_its_versions_descends_and_what_started_from_that() -> None:
    family = found(
        version("grandchild@v1", "child@v2"),
        version("child@v1", "random"),
        version("child@v2", "gone@v3"),
        version("mixed@v1", "stsb@v1", "child@v2"),
        version("namesake@v1", "gone-too@v1"),
        version("gone@v4", "gone@v3"),
    )
    assert family.versions == {
        "child@v2": "started from gone@v3",
        "grandchild@v1": "started from child@v2",
        "mixed@v1": "started from child@v2",
    }
    assert family.hypernetworks == {}


def test_the_mean_holds_it_while_it_was_one_of_the_bases_tasks() -> None:
    family = found(
        version("before@v1", "mean", at=9.0),
        version("mean@v1", "mean", at=11.0),
        version("part@v1", "stsb@v1", "mean", at=11.0),
        version("after@v1", "mean", at=21.0),
        version("elsewhere@v1", "mean", at=11.0, base=OTHER),
    )
    assert set(family.versions) == {"mean@v1", "part@v1"}


def test_a_task_without_an_embedding_was_neither_in_the_mean_nor_protected() -> None:
    alone = Root("gone", frozenset({BASE, OTHER}), {OTHER: 10.0}, until=20.0)
    family = found(
        version("mean@v1", "mean", at=11.0),
        version("there@v1", "mean", at=11.0, base=OTHER),
        tuned(2, 1, "beside", at=16.0),
        tuned(3, 1, "gone", at=16.0),
        root=alone,
    )
    assert set(family.versions) == {"there@v1"}
    assert family.hypernetworks == {(BASE, 3): "tuned on it"}


def test_a_prior_counts_only_where_it_was_fitted_with_the_task() -> None:
    single, pairs = ("single", 2), ("pairs", 2)
    teacher = Root("gone", frozenset({BASE}), priors=frozenset({(BASE, *single)}))
    family = found(
        version("drawn@v1", prior=single),
        version("drawn@v2", prior=single, prior_without=frozenset({"gone-too"})),
        version("left@v1", prior=single, prior_without=frozenset({"gone", "left"})),
        version("pairs@v1", prior=pairs),
        version("child@v1", "drawn@v1", prior=single, prior_without=frozenset({"gone"})),
        root=teacher,
    )
    assert set(family.versions) == {"drawn@v1", "drawn@v2", "child@v1"}


def test_a_hypernetwork_that_was_tuned_on_it_or_beside_it_descends_and_whatever_stands_under_that() -> None:
    family = found(
        tuned(2, 1, "early", at=9.0),
        tuned(3, 2, "gone", at=15.0),
        tuned(4, 3, "late", at=30.0),
        tuned(5, 2, "late", at=30.0),
        tuned(6, 2, "beside", at=16.0),
        version("under@v1", under=4),
        version("carried@v2", "carried@v1", under=3, origin=2),
        version("carried@v1", under=2),
        version("free@v1", under=5),
    )
    assert family.hypernetworks == {
        (BASE, 3): "tuned on it",
        (BASE, 4): "tuned from hypernetwork version 3",
        (BASE, 6): "protected its answers while it was tuned",
    }
    assert set(family.versions) == {"under@v1", "carried@v2"}


def test_a_hypernetwork_descends_if_the_embedding_that_was_tuned_with_it_does() -> None:
    family = found(
        tuned(2, 1, "child", at=30.0),
        version("child@v1", "gone@v1", at=30.0, under=2, job="child-tunes-2"),
        version("other@v1", at=40.0, under=2),
    )
    assert family.hypernetworks == {(BASE, 2): "tuned with child@v1"}
    assert family.versions["other@v1"] == "was learned under hypernetwork version 2"


def test_what_has_nothing_to_do_with_it_does_not_descend() -> None:
    never = Root("gone", frozenset())
    assert found(tuned(2, 1, "other"), version("a@v1", "mean", under=2), root=never) == Descent()


def test_the_document_names_every_alias_of_what_descends() -> None:
    family = Descent({"b@v1": "why"}, {(BASE, 2): "because"})
    assert Descendants.of_descent(family, {"b@v1": ["latest", "shop"], "c@v1": ["latest"]}).to_json() == {
        "versions": [{"version": "b@v1", "why": "why", "aliases": ["latest", "shop"]}],
        "hypernetworks": [{"base_digest": BASE, "version": 2, "why": "because"}],
    }
