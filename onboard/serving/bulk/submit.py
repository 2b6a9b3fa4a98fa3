"""Submit files to be answered by the workers of a queue. Everything is validated before the job is queued."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from onboard.data.text_stream import stream_texts
from onboard.data.texts import TextRow
from onboard.domain.job import BULK, Job, JobSpec
from onboard.domain.names import Reference, require_name
from onboard.domain.task import EmbeddingVersion, labels_called
from onboard.errors import ConflictError
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.shards import ShardRepository
from onboard.serving.bulk.answering import begun_plan, require_apart
from onboard.serving.bulk.asked import BulkQuestion
from onboard.serving.bulk.inputs import InputFile, Inputs, inputs_of, listing_digest
from onboard.serving.bulk.outputs import outputs_at
from onboard.serving.bulk.plan import require_form, require_labels
from onboard.serving.bulk.request import BulkRequest
from onboard.storage.objects import is_url
from onboard.versions.describe import alias_names, resolve

_LOOKED_AT: Final = 100  # rows per file that are searched for texts


def submit_bulk(
    services: Services,
    references: Sequence[str],
    source: str,
    output: str,
    queue: str,
    asked: Mapping[str, Any],
    *,
    refuses_bad_rows: bool = False,
) -> tuple[Job, list[str]]:
    """Queue a job that answers every row. Does not wake a worker.

    Args:
        references: the versions that answer; they are pinned now.
        source: file, folder, pattern or URL that the workers can read.
        output: folder or URL: new, empty, or of the same run, which is then continued.
        asked: further fields of a `BulkQuestion`.
        refuses_bad_rows: whether the job fails, before it answers any row, where one cannot be answered.

    Returns:
        The job, and warnings.

    Raises:
        NotFoundError: a version or the files do not exist.
        InputError, DatasetError: a file has no texts or not those that a version takes, the output is inside the input,
            a version does not have the given labels, or the queue name is invalid.
        ConflictError: the output contains something else, or another job writes there.
        NotAllowedError, StorageError: the output cannot be written, or the input cannot be read.
    """
    require_name(queue, "queue name")
    versions = resolve(services.database, *references)
    names = [alias_names(services.database, reference) for reference in references]
    pinned = tuple(version.reference for version in versions)
    question = BulkQuestion(tuple(references), pinned, **asked, names=tuple(names) if any(names) else ())
    for version, called in zip(versions, names, strict=True):
        require_labels(version.reference, question.labels, labels_called(version.labels, called))
    request = _checked(_everywhere(source), _everywhere(output), question, versions)
    request = replace(request, refuses_bad_rows=refuses_bad_rows)
    spec = JobSpec(
        Reference.parse(references[0]).task, dataset="", init="random", tune_hypernetwork="never",
        base=services.settings.base, options={BULK: request.to_json()},
    )  # fmt: skip
    job = _queued(services, spec, request, queue)
    weak = [version for version in versions if version.weak]
    return job, [f"{version.reference} is weak, see: onboard versions {version.task}" for version in weak]


def _checked(source: str, output: str, question: BulkQuestion, versions: Sequence[EmbeddingVersion]) -> BulkRequest:
    """Return the request after checking its files and output."""
    inputs, outputs = inputs_of(source), outputs_at(output)
    with closing(inputs):
        files = inputs.files()
        require_apart(inputs, outputs)
        _require_texts(inputs, files, question, versions)
        with outputs.in_our_words():
            begun_plan(inputs, outputs, question, files)  # raises if the output contains something else
    size_bytes = sum(file.size_bytes for file in files)
    return BulkRequest(inputs.place, outputs.place, question, listing_digest(files), len(files), size_bytes)


def _queued(services: Services, spec: JobSpec, request: BulkRequest, queue: str) -> Job:
    with services.database.write() as session:
        writing = ShardRepository(session).job_writing_to(request.output)
        if writing is not None:
            raise ConflictError("output-being-written", job=writing, output=request.output)
        return JobRepository(session).add(spec, queue=queue)[0]


def _everywhere(place: str) -> str:
    """Return a path or URL that workers can use from any working directory."""
    return place.rstrip("/") if is_url(place) else os.path.abspath(place)  # noqa: PTH100 - which keeps patterns as they are


def _require_texts(
    inputs: Inputs, files: Sequence[InputFile], question: BulkQuestion, versions: Sequence[EmbeddingVersion]
) -> None:
    """Check the first rows of every local file, or of the first object of a store."""
    takes = {version.reference: version.pairs for version in versions}
    for file in files if inputs.near else files[:1]:
        shown = inputs.shown(file.name)
        rows = stream_texts(inputs.path(file.name), question.text_fields, shown=shown, may_be_empty=len(files) > 1)
        for row in islice(rows, _LOOKED_AT):
            if isinstance(row, TextRow):
                require_form(len(row.texts) == 2, takes)
                break
