"""Messages about jobs: submitting, probing, training, evaluating."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

JOBS: Final[Mapping[str, Message]] = {
    "dataset-missing": Message(
        "There is no dataset.",
        "Pass a file. For a task without rows, pass its name and its labels: --task NAME --labels A,B",
    ),
    "features-not-finite": Message(
        "The features of a text are not finite numbers.", "Check the service with: onboard doctor"
    ),
    "hypernetwork-moved": Message(
        "The hypernetwork of the base changed {times} times while the job ran.",
        "Retry the job: onboard jobs retry {id}",
    ),
    "init-of-other-base": Message(
        "{version} belongs to another base than {base!r}.", "Use --init auto, which chooses an embedding of this base."
    ),
    "init-reduction-factor-differs": Message(
        "The adapters of {init} have reduction_factor {made}, so {asked} cannot start from them.",
        "Leave the setting out, or --init.",
    ),
    "init-with-method": Message(
        "--init {init} cannot be used with --method {method}, which starts from the adapters of one task.",
        "Use --init TASK[@REF], or leave --init out.",
    ),
    "job-of-other-base": Message(
        "The job was submitted for base {pinned}, but {base!r} on this worker is {base_digest}.",
        "Install the same version of onboard on every worker, or submit again.",
    ),
    "job-rows-deleted": Message(
        "The rows of job {job} were deleted.", "Submit the corrected file: onboard submit FILE"
    ),
    "job-without-version": Message(
        "Job {job} is {state} and has published no version.", "See why with: onboard jobs show {job}"
    ),
    "label-needs-two-rows": Message(
        "--method linear needs two training rows of every label; {label!r}{more} has fewer.",
        "Label one more row of it, or leave --method out.",
    ),
    "label-studio-other-choices": Message(
        "The task {task!r} has {has} per text, the project asks for {wanted}.",
        'Write choice="{choice}" in the labeling configuration, or use the name of another task in the URL.',
    ),
    "label-studio-other-texts": Message(
        "The task {task!r} takes {has} per row, but the project has {asked}.",
        "Use the name of another task in the URL.",
    ),
    "label-studio-task-of-numbers": Message(
        "The task {task!r} predicts numbers, not labels.", "Use the name of another task in the URL."
    ),
    "label-without-training-row": Message(
        "A label has no training row.", "Submit a row of every label, or --readout never."
    ),
    "labels-not-csv": Message("labels: this is not a line of CSV.", "Separate the labels by commas: A,B"),
    "labels-one-empty": Message("labels: one of them is empty.", "Separate the labels by commas: A,B"),
    "lessons-of-several-bases": Message(
        "The lessons belong to several bases: their widths differ.", "Check the service with: onboard doctor"
    ),
    "log-cursor-invalid": Message("Invalid cursor for this log.", "Start again without a cursor."),
    "method-without-settings": Message("{name} has no settings.", "Leave --method-setting out."),
    "mlflow-address-invalid": Message(
        "{uri!r} is not a valid URL: {reason}.", "Use a URL such as --uri http://mlflow.internal:5000"
    ),
    "mlflow-artifacts-unavailable": Message(
        "MLflow at {uri} does not accept the report: {reason}.", "Check its artifact store, then try again."
    ),
    "mlflow-refuses": Message("MLflow at {uri} refuses the request: {reason}", "Correct --uri or --experiment."),
    "mlflow-unreachable": Message("MLflow cannot be reached at {uri}: {reason}.", "Start it, or correct --uri."),
    "no-label-changed": Message("No label was changed.", "Choose another label for at least one row."),
    "option-with-method": Message("{option} has no meaning with {alone}, which {reason}.", "{remedy}"),
    "option-without-rows": Message(
        "{option} has no meaning without labeled rows: the version is a readout of the labels' words alone.",
        "Leave it out, or submit a dataset.",
    ),
    "predictions-not-finite": Message(
        "{rows} of {predictions} predictions are not finite numbers: the training diverged.",
        "Submit again with another --seed, or with --init random.",
    ),
    "prior-width-differs": Message(
        "The prior has weights for {shape} features but the rows have {width}: it belongs to another base.",
        "Check the service with: onboard doctor",
    ),
    "readout-needs-two-rows": Message("A readout needs at least two rows.", "Submit more rows."),
    "readout-needs-two-texts": Message("A readout without labeled rows needs at least two texts.", "Pass more texts."),
    "readout-width-differs": Message(
        "The readout takes {own} features but got {width}.",
        "The readout belongs to another base: submit the task again.",
    ),
    "row-ambiguous": Message(
        "{rows} rows begin with “{shown}”.", "Correct these rows in your file and submit it again."
    ),
    "suspects-form-outdated": Message(
        "The form does not match the suspected rows of this job.", "Reload the page of the job."
    ),
    "task-name-missing": Message(
        "Without a dataset there is no file to name the task after.",
        "Name the task: --task NAME",
    ),
    "tune-with-auto-method": Message(
        "--tune-hypernetwork always has no meaning with --method auto, which lets the rows choose.",
        "Leave --tune-hypernetwork out, or --method.",
    ),
    "tuned-weight-not-finite": Message(
        "Tuning the hypernetwork diverged: a weight is not finite.",
        "Submit again without --tune-hypernetwork, or with another --seed.",
    ),
    "tuning-diverged": Message(
        "Tuning the hypernetwork diverged: the loss is {loss} at step {step}.",
        "Submit again without --tune-hypernetwork, or with another --seed.",
    ),
    "unknown-attempt": Message("Job {job} has had {attempts} attempts.", "See its log with: onboard jobs logs {job}"),
    "unknown-init": Message(
        "There is no embedding {init!r} to start from.{guess}",
        "Use --init auto, --init random, or one of: onboard tasks list",
    ),
    "unknown-init-embedding": Message(
        "There is no embedding {init!r} to start from.", "Use --init auto, or one of: onboard tasks list"
    ),
    "unknown-job-or-task": Message(
        "There is no job {job!r}, and no task of that name has jobs.{alike}", "List them with: onboard jobs list"
    ),
    "unknown-metric": Message("There is no metric {metric!r} for {kind}.", "Use one of: --metric {allowed}"),
    "unknown-place-in-order": Message("after: {place!r} is not a position in this order.", "Start again without it."),
    "scores-not-finite": Message(
        "The scores of a readout are not finite numbers.", "Check the service with: onboard doctor"
    ),
    "task-changed-meanwhile": Message("Other requests keep changing the task {task!r}.", "Try again in a moment."),
    "task-being-learned": Message(
        "Job {job} is learning the task {task!r}.", "Wait for it, then change the labels: onboard jobs watch {job}"
    ),
    "task-without-labels": Message(
        "The task {task!r} is a regression: it has no labels.", "Change labels of a classification only."
    ),
    "task-without-rows": Message(
        "The task {task!r} has no labeled rows.", "Submit it again with the labels that it should have."
    ),
    "option-with-sets": Message(
        "{option} has no meaning for a task with several labels per text: its version is a readout alone.",
        "Leave {option} out.",
    ),
    "task-rows-not-stored": Message(
        "The rows of the task {task!r} are not stored here: it {reason}.",
        "Submit a dataset under another name: onboard submit FILE --task NAME",
    ),
    "task-of-other-base": Message(
        "The task {task!r} was learned on the base {pinned:.19}…, and {base!r} is now {digest:.19}….",
        "Submit all its rows again: onboard submit FILE",
    ),
    "earlier-change-open": Message(
        "Job {holder} is learning the task {task!r} as it was before this change.",
        "No action is needed: this job continues afterwards. See the other one: onboard jobs show {holder}",
    ),
    "earlier-rebuilding-open": Message(
        "Job {holder} rebuilds an earlier version and may tune the hypernetwork that this job starts from.",
        "No action is needed: this job continues afterwards. See the other one: onboard jobs show {holder}",
    ),
}
