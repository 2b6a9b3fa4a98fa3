"""The request of a job that answers files: source, question and output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onboard.domain.job import BULK, JobSpec
from onboard.errors import InputError
from onboard.serving.bulk.asked import BulkQuestion


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """The request as stored in the job's spec.

    Args:
        source, output: absolute paths or URLs, which mean the same to every worker.
        listing: digest of the files' names, sizes and states at submission.
        files, size_bytes: number of files and their total size at submission.
        refuses_bad_rows: whether the job fails before it answers any row if one row cannot be answered.
    """

    source: str
    output: str
    question: BulkQuestion
    listing: str
    files: int
    size_bytes: int
    refuses_bad_rows: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the request as a JSON-compatible document."""
        return {
            "input": self.source, "output": self.output, "question": self.question.to_json(),
            "listing": self.listing, "files": self.files, "size_bytes": self.size_bytes,
            "refuses_bad_rows": self.refuses_bad_rows,
        }  # fmt: skip

    @classmethod
    def of(cls, spec: JobSpec) -> BulkRequest:
        """Return the request of a job. Raises InputError: another version of Onboard wrote it in another form."""
        try:
            return cls._read(spec.options[BULK])
        except (KeyError, TypeError) as error:
            raise InputError("bulk-request-unknown", reason=error) from error

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> BulkRequest:
        question = BulkQuestion.from_json(document["question"])
        size = int(document["files"]), int(document["size_bytes"])
        refuses = bool(document.get("refuses_bad_rows", False))  # earlier releases skipped them
        return cls(document["input"], document["output"], question, document["listing"], *size, refuses)
