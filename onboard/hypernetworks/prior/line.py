"""Use cases: list a base's priors, show one with its lessons, and check that refitting gives the same numbers."""

from __future__ import annotations

from typing import Any, Final

from onboard.bases import Base
from onboard.contract.priors import HelpedDocument, PriorDetail, PriorDocument, PriorList, PriorUse, TaughtDocument
from onboard.domain.moment import to_iso
from onboard.domain.prior import Form
from onboard.errors import NotFoundError
from onboard.hypernetworks.prior.fitting import digest_of_numbers, fitted
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services

MOST_HELPED: Final = 200  # newest versions with contributions of earlier tasks


def list_priors(database: Database, base: str) -> PriorList:
    """Return the versions of a base's priors, and how much they helped the newest versions of its tasks.

    Args:
        base: its name or digest.

    Raises:
        NotFoundError: the base is not registered.
    """
    with database.read() as session:
        record, priors = BaseRepository(session).get(base), PriorRepository(session)
        versions = tuple(PriorDocument.of(version) for version in priors.list(record.digest))
        helped = priors.helped(record.digest, MOST_HELPED)
    uses = tuple(
        HelpedDocument(version=reference, created_at=to_iso(at), prior=PriorUse.model_validate(facts))
        for reference, at, facts in helped
    )
    return PriorList(base=record.name, base_digest=record.digest, priors=versions, helped=uses)


def show_prior(database: Database, base: str, form: Form, version: int | None) -> PriorDetail:
    """Return one version with the lessons that it was fitted to.

    Args:
        version: its number; None is the head.

    Raises:
        NotFoundError: the base or the version does not exist, or no prior is fitted yet.
    """
    with database.read() as session:
        record, priors = BaseRepository(session).get(base), PriorRepository(session)
        if version is None:
            prior_version = priors.head(record.digest, form)
        else:
            prior_version = priors.get(record.digest, form, version)
        if prior_version is None:
            raise NotFoundError("prior-not-fitted", base=record.name, form=form)
        taught = priors.lessons(prior_version)
    lessons = tuple(TaughtDocument.of(lesson) for lesson in taught)
    return PriorDetail.of(prior_version, base=record.name, taught=lessons)


def check_priors(services: Services, base: Base) -> list[dict[str, Any]]:
    """Refit the heads of a base's priors. Returns `form`, `version`, `lessons`, `left_out`, `same` of each.

    `left_out` are the tasks with lessons that the head was fitted without.

    Raises:
        UnavailableError: the artifact store cannot be reached.
    """
    heads = []
    with services.database.read() as session:
        priors = PriorRepository(session)
        newest = {version.form: version for version in priors.list(base.digest) if version.retired_at is None}
        taught = {form: priors.lessons(version) for form, version in newest.items()}
    for form, version in newest.items():
        prior = fitted(services, base, form, taught[form])
        same = prior is not None and digest_of_numbers(prior) == version.fitted
        heads.append(
            {"form": form, "version": version.version, "lessons": version.lessons, "same": same,
             "left_out": list(version.left_out)}
        )  # fmt: skip
    return heads
