"""Addresses of pages of the documentation in earlier releases, and their current addresses.

The plugin mkdocs-redirects would install a second site generator and cannot redirect the sections of one page to
several pages.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from typing import Final

MOVED: Final = {
    "quickstart.md": "how-to/submit.md",
    "operations.md": "how-to/troubleshoot.md",
    "api.md": "reference/http-api.md",
    "architecture.md": "explanation/architecture.md",
    "bases.md": "how-to/make-a-base.md",
    "changing-tasks.md": "how-to/change-a-task.md",
    "several-labels.md": "how-to/several-labels.md",
    "client.md": "how-to/use-the-client.md",
    "datasets.md": "reference/datasets.md",
    "deleting.md": "how-to/delete-a-task.md",
    "deployment.md": "how-to/deploy.md",
    "glossary.md": "reference/glossary.md",
    "guard.md": "explanation/guard.md",
    "how-it-works.md": "explanation/how-it-works.md",
    "methods.md": "reference/methods.md",
    "pages.md": "how-to/use-the-pages.md",
    "prior.md": "explanation/prior.md",
    "probe.md": "explanation/probe.md",
    "python.md": "reference/python.md",
    "readout.md": "explanation/readout.md",
    "training.md": "explanation/training.md",
    "tuning.md": "explanation/tuning.md",
    "tutorial.md": "tutorial/first-task.md",
    "webhooks.md": "how-to/webhooks.md",
    "results/ablations.md": "results/learning.md#the-papers-comparisons",
    "results/api.md": "results/service.md",
    "results/bells.md": "results/service.md",
    "results/bulk.md": "results/service.md",
    "results/calibration.md": "results/learning.md#calibration",
    "results/curriculum.md": "results/learning.md#curriculum",
    "results/first_version.md": "results/service.md",
    "results/kills.md": "results/service.md",
    "results/kronecker.md": "results/methods.md",
    "results/load.md": "results/service.md",
    "results/multilabel.md": "results/learning.md#several-labels-per-text",
    "results/pages.md": "results/service.md",
    "results/prior.md": "results/service.md",
    "results/probe.md": "results/learning.md#probe",
    "results/queue.md": "results/service.md",
    "results/recipes.md": "results/learning.md#training-recipe",
    "results/setfit_sets.md": "results/learning.md#setfits-test-sets",
    "results/shuffled.md": "results/learning.md#the-start-matters-little",
    "results/small.md": "results/learning.md#a-larger-base",
    "results/sources.md": "results/mini.md",
    "results/submitting.md": "results/learning.md#time-of-a-job",
    "results/transfer.md": "results/learning.md#transfer",
    "results/tuning.md": "results/guard.md#tuning",
    "results/upload.md": "results/service.md",
    "results/worker_memory.md": "results/service.md",
    "results/zero_rows.md": "results/learning.md#without-rows",
}
SECTIONS: Final = {
    "deleting.md#what-goes": "how-to/delete-a-task.md#what-is-deleted",
    "deleting.md#what-stays": "how-to/delete-a-task.md#what-remains",
    "deleting.md#what-descends-from-it": "how-to/delete-a-task.md#derived-versions",
    "deleting.md#unlearning": "how-to/delete-a-task.md#unlearn",
    "readout.md#how-sure-the-answers-sound": "explanation/readout.md#calibration",
    "tuning.md#the-rule-of-auto": "explanation/tuning.md#when-auto-tunes",
    "methods.md#letting-rows-choose-the-method": "reference/methods.md#let-the-rows-choose",
    "webhooks.md#what-is-told": "how-to/webhooks.md#events",
    "webhooks.md#verifying": "how-to/webhooks.md#verify-signatures",
    "webhooks.md#when-a-message-does-not-arrive": "how-to/webhooks.md#retries",
    "webhooks.md#where-messages-may-go": "how-to/webhooks.md#allowed-destinations",
    "webhooks.md#what-can-go-wrong": "how-to/webhooks.md#troubleshoot",
    "deployment.md#submitting-fetching-predicting": "how-to/deploy.md#connect-clients",
    "bases.md#learning-on-by-episodes": "how-to/make-a-base.md#train-further-by-episodes",
    "bases.md#a-curriculum": "how-to/make-a-base.md#add-a-curriculum",
    "bases.md#measuring": "results/README.md",
    "training.md#which-rows-to-label-next": "how-to/submit.md#choose-rows-to-label-next",
    "datasets.md#texts-to-predict": "how-to/predict.md#predict-files",
    "datasets.md#exports-of-labelling-tools": "reference/datasets.md#exports-of-labeling-tools",
    "readout.md#texts-that-are-unlike-the-data": "explanation/readout.md#out-of-distribution-texts",
    "quickstart.md#install": "how-to/install.md",
    "quickstart.md#check": "how-to/submit.md#check",
    "quickstart.md#submit": "how-to/submit.md#submit",
    "quickstart.md#read-a-report": "how-to/read-a-report.md",
    "quickstart.md#submit-again": "how-to/submit.md#submit-again",
    "quickstart.md#predict": "how-to/predict.md#predict",
    "quickstart.md#predict-somewhere-else": "how-to/predict.md#predict-somewhere-else",
    "quickstart.md#on-the-hub": "how-to/share-on-the-hub.md",
    "quickstart.md#look-around": "how-to/submit.md#look-around",
    "operations.md#settings": "reference/settings.md",
    "operations.md#postgresql-and-redis": "how-to/postgresql-and-redis.md",
    "operations.md#behind-a-pooler": "how-to/postgresql-and-redis.md#behind-a-pooler",
    "operations.md#the-http-door": "how-to/serve.md",
    "operations.md#tokens": "how-to/tokens.md",
    "operations.md#datasets-of-the-hub": "how-to/serve.md#datasets-of-the-hub",
    "operations.md#behind-a-reverse-proxy": "how-to/serve.md#behind-a-reverse-proxy",
    "operations.md#below-a-path": "how-to/serve.md#below-a-path",
    "operations.md#limits": "reference/limits.md",
    "operations.md#what-to-watch": "how-to/monitor.md#what-to-check",
    "operations.md#logs": "how-to/monitor.md#logs",
    "operations.md#metrics-and-alerts": "reference/metrics.md",
    "operations.md#traces": "how-to/traces.md",
    "operations.md#mlflow": "how-to/mlflow.md",
    "operations.md#pausing-draining-upgrading": "how-to/upgrade.md",
    "operations.md#backup": "how-to/back-up.md#backup",
    "operations.md#restore": "how-to/back-up.md#restore",
    "operations.md#garbage-collection-and-retention": "how-to/clean-up.md",
    "operations.md#jobs-that-tune": "how-to/tune-the-hypernetwork.md",
    "operations.md#hypernetworks": "how-to/tune-the-hypernetwork.md#manage-hypernetworks",
    "operations.md#carrying-tasks-to-the-head": "how-to/tune-the-hypernetwork.md#carry-tasks-to-the-head",
    "operations.md#runbook": "how-to/troubleshoot.md",
    "operations.md#a-worker-was-lost": "how-to/troubleshoot.md#a-worker-was-lost",
    "operations.md#a-worker-is-faulty": "how-to/troubleshoot.md#a-worker-is-faulty",
    "operations.md#a-job-is-dead": "how-to/troubleshoot.md#a-job-is-dead",
    "operations.md#a-job-failed": "how-to/troubleshoot.md#a-job-failed",
    "operations.md#a-job-took-too-long": "how-to/troubleshoot.md#a-job-took-too-long",
    "operations.md#the-gpus-memory-is-too-small": "how-to/troubleshoot.md#the-gpus-memory-is-too-small",
    "operations.md#jobs-wait-and-nothing-happens": "how-to/troubleshoot.md#jobs-wait-and-nothing-happens",
    "operations.md#a-worker-hears-no-bell": "how-to/troubleshoot.md#a-worker-is-unresponsive",
    "operations.md#a-job-must-stop": "how-to/troubleshoot.md#a-job-must-stop",
    "operations.md#disk-full": "how-to/troubleshoot.md#disk-full",
    "operations.md#the-database-is-damaged": "how-to/troubleshoot.md#the-database-is-damaged",
    "operations.md#the-schema-is-older-or-newer": "how-to/troubleshoot.md#the-schema-is-older-or-newer",
    "operations.md#postgresql-is-away": "how-to/troubleshoot.md#postgresql-is-unavailable",
    "operations.md#an-artifact-is-missing-or-damaged": "how-to/troubleshoot.md#an-artifact-is-missing-or-damaged",
    "operations.md#a-version-is-refused-pin-mismatch": "how-to/troubleshoot.md#a-version-is-refused-pin-mismatch",
    "operations.md#a-bad-version-is-latest": "how-to/compare-and-roll-back.md",
    "operations.md#what-was-measured": "results/README.md",
    "operations.md#trust": "explanation/trust.md",
}
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Moved</title>
<link rel="canonical" href="{target}">
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
<script>
  const sections = {sections};
  location.replace(sections[location.hash.slice(1)] ?? {otherwise});
</script>
<p>This page has moved to <a href="{target}">{target}</a>.</p>
</html>
"""


def redirects() -> Iterator[tuple[str, str]]:
    """Yield the address of each old page in the site, and the HTML that redirects to the new one."""
    for old, new in MOVED.items():
        folder, target = posixpath.dirname(old), address_of(new, posixpath.dirname(old))
        sections = {
            section.partition("#")[2]: address_of(place, folder)
            for section, place in SECTIONS.items()
            if section.partition("#")[0] == old
        }
        otherwise = json.dumps(target) + ("" if "#" in target else " + location.hash")
        page = _PAGE.format(target=target, sections=json.dumps(sections), otherwise=otherwise)
        yield address_of(old), page


def address_of(page: str, folder: str = "") -> str:
    """Return the site's address of a page of docs/, with or without an anchor, relative to a folder of the site."""
    path, mark, anchor = page.partition("#")
    file = posixpath.relpath(path, folder or ".").removesuffix(".md")
    return f"{file.removesuffix('README') + 'index' if file.endswith('README') else file}.html{mark}{anchor}"
