"""Messages about predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

SERVING: Final[Mapping[str, Message]] = {
    "bulk-request-unknown": Message(
        "The job has a request in an unknown format: {reason}.",
        "Install the version of onboard that it was submitted with, or a later one.",
    ),
    "bundle-base-missing": Message(
        "The folder {folder} needs the base {base:.19}…, which is not on this machine.",
        "Fetch it with its base: onboard fetch TASK --bundle; or set ONBOARD_BASE to the folder of that base.",
    ),
    "bundle-hypernetwork-missing": Message(
        (
            "The folder {folder} does not contain hypernetwork version {hypernetwork_version}, which its embedding "
            "is pinned to."
        ),
        "Fetch it again: onboard fetch TASK",
    ),
    "bundle-of-other-base": Message(
        "The folder {folder} contains another base than its {part} is pinned to.", "Fetch it again: onboard fetch TASK"
    ),
    "bundle-part-damaged": Message(
        "The file of the {part} in {folder} does not match its digest.", "Fetch it again: onboard fetch TASK"
    ),
    "bundle-readout-missing": Message(
        "The folder {folder} does not contain the readout of its embedding.", "Fetch it again: onboard fetch TASK"
    ),
    "embedding-width-differs": Message(
        "{task}@v{version} has {shape} numbers, but this hypernetwork takes {size}.",
        "Compare it with the base: onboard base show",
    ),
    "folder-not-servable": Message(
        "{folder} is neither a fetched version, nor a base, nor the home of a service.",
        "Pass a folder that onboard fetch made, or a base listed by onboard base list.",
    ),
    "input-changed": Message(
        "{inputs} has changed since the run began.", "Restore the file, or start again with another --output folder."
    ),
    "input-field-wrong": Message("Input {row}: {field} {trouble}.", "{remedy}"),
    "input-file-gone": Message(
        "{path} no longer exists.", "Restore the file, or start again with another --output folder."
    ),
    "input-file-unreadable": Message(
        "{path} can no longer be read: {reason}.", "Restore the file, or start again with another --output folder."
    ),
    "input-labels-of-regression": Message(
        "Input {row}: {version} answers with a number and has no labels.", "Leave labels out."
    ),
    "input-labels-wrong": Message(
        "Input {row}: {version} {trouble}.", "Use two or more of its labels: {listed}{more}."
    ),
    "input-mixes-pairs": Message("{single} has one text per row, {width} has two.", "Predict them in two runs."),
    "input-name-invalid": Message("Input {row}: {field}: {reason}", "{remedy}"),
    "input-not-object": Message("Input {row} is not a JSON object.", 'Send {{"task": …, "text": …}}.'),
    "input-pairs-differ": Message("{task} takes {taken}, but the input has {has}.", "Pass them: {fields}"),
    "input-path-missing": Message("There is no {root}.", "Check the path."),
    "input-texts-differ": Message(
        "Input {row}: {version} takes {taken}, but {got} given.", "Send {wanted} for {task}."
    ),
    "input-url-missing": Message("There is no {place}.", "Check the URL: `aws s3 ls` lists the files there."),
    "input-without-files": Message("{place} contains no files.", "Use a folder of JSONL, CSV, TSV or Parquet files."),
    "input-without-rows": Message("None of the {files:,} files contains a row.", "Pass files with rows in them."),
    "output-being-written": Message(
        "Job {job} is writing to {output}.",
        "Choose another folder with --output, or wait for the job: onboard jobs watch {job}",
    ),
    "output-has-other-files": Message(
        "{output} contains files that do not belong to a run.", "Choose another folder with --output."
    ),
    "output-inside-input": Message(
        "{output} is inside the input folder {place}.", "Choose a folder outside of it with --output."
    ),
    "output-of-other-input": Message(
        "{output} contains the answers of another run: the files in {place} have changed.",
        "Choose another folder with --output.",
    ),
    "output-of-other-request": Message(
        "{output} contains the answers of another run with other options.", "Choose another folder with --output."
    ),
    "output-taken": Message(
        "Job {job} is writing to {output}.", "Wait for it, then submit this again: onboard jobs watch {job}"
    ),
    "plan-damaged": Message(
        "{place}/plan.json is not the plan of a run: {reason}.", "Choose another folder with --output."
    ),
    "plan-missing": Message("There is no plan in {output}.", "Use a folder that all workers of the queue can access."),
    "rows-not-answerable": Message(
        "{bad_rows:,} of {rows_shown} cannot be answered; nothing was written.",
        "Correct them, or skip them: --on-error skip",
    ),
    "shard-lost": Message(
        "Shard {shard} has used up its attempts.",
        "Find the cause in the worker logs (out of memory?), then: onboard jobs retry {id}",
    ),
    "shard-rows-differ": Message(
        "{shard} has {written:,} rows, but the plan says {rows:,}.", "Choose another folder with --output."
    ),
    "source-changed": Message(
        (
            "{source} has changed since the job was submitted: {files:,} files of {size_bytes:,} bytes "
            "then, {files_now:,} of {size_bytes_now:,} now."
        ),
        "Restore the file, or start again with another --output folder.",
    ),
    "version-not-in-base": Message("Base {base} has no {reference}.", "List its tasks with: onboard base show {base}"),
    "version-of-other-backbone": Message(
        "{version} is pinned to backbone {pinned:.19}…, base {base} has {present:.19}….",
        "Set ONBOARD_BASE to the base that the version was trained on, or submit the task again.",
    ),
    "version-without-novelty": Message(
        "{named} cannot tell whether a text is unknown: shipped tasks and early versions lack the statistics.",
        "Submit {task} again with at least 8 rows, or leave unknown out.",
    ),
}
