"""Messages about the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

REGISTRY: Final[Mapping[str, Message]] = {
    "alias-exists": Message("{task}@{alias} is now v{version}.", "See its versions with: onboard versions {task}"),
    "alias-gone": Message("{task}@{alias} does not exist.", "See its versions with: onboard versions {task}"),
    "alias-moved": Message(
        "{task}@{alias} is now v{version}, not v{expected}.", "See its versions with: onboard versions {task}"
    ),
    "canary-inputs-differ": Message(
        "{task}@v{version} takes {taken}, and v{present} takes {present_taken}, so they cannot share texts.",
        "Promote it without a share.",
    ),
    "canary-is-another": Message(
        "The canary of {task}@{alias} is v{canary}, not v{version}.",
        "End it with: onboard promote {task}@v{canary} --alias {alias} --share 0%",
    ),
    "canary-is-the-version": Message(
        "{task}@{alias} already is v{version}, so v{version} cannot be its canary as well.", "Choose another version."
    ),
    "canary-kind-differs": Message(
        "{task}@v{version} is of kind {kind}, and v{present} is of kind {present_kind}, so they cannot share texts.",
        "Promote it without a share.",
    ),
    "canary-without-alias": Message(
        "{task}@{alias} does not exist yet, so there is no version to share its texts with.",
        "Promote a version without a share first: onboard promote {task}@vN --alias {alias}",
    ),
    "no-canary": Message("{task}@{alias} has no canary.", "See its versions with: onboard versions {task}"),
    "alias-without-past": Message(
        "{task}@{alias} has no version before v{present} to go back to.",
        "Promote a version: onboard promote {task}@vN --alias {alias}",
    ),
    "quota-bytes": Message(
        "{owner} may store {max_bytes} bytes here and has {bytes_left} left; this needs {needed_bytes}.",
        "Delete tasks that are no longer needed, or let an operator raise the limit: "
        "onboard token limit {owner} --max-bytes SIZE",
    ),
    "quota-jobs": Message(
        "{owner} may have {max_jobs} queued and running jobs and has {jobs}.",
        "Wait until one of them ends, cancel one, or let an operator raise the limit: "
        "onboard token limit {owner} --max-jobs NUMBER",
    ),
    "unknown-owner": Message(
        "Neither a valid token nor a signed-in person has the name {owner!r}.",
        "List the names with: onboard token list",
    ),
    "attempt-fenced": Message(
        "Attempt {attempt} no longer owns job {job}.", "No action is needed: the later attempt continues."
    ),
    "backup-columns-differ": Message(
        "Rows of {table} in the backup have other columns than its schema.", "Use another backup."
    ),
    "backup-rows-unfit": Message("Rows of {table} in the backup do not fit: {reason}.", "Use another backup."),
    "backup-table-unknown": Message(
        "The backup has a table {table}, which its schema does not know.", "Use another backup."
    ),
    "bulk-job-stopped": Message("Job {job} was stopped while it ran.", "Submit it again if it is still needed."),
    "database-busy": Message("Every connection to the database is busy.", "Try again in a moment."),
    "database-damaged": Message("The database is damaged.", "Restore the service from a backup."),
    "database-deadlock": Message("Another transaction is changing the same rows.", "Try again in a moment."),
    "database-disk-full": Message("The disk of the database is full.", "Free some space on the server."),
    "database-disk-full-at": Message("The disk of the database {file} is full.", "Free some space, then try again."),
    "database-encoding-wrong": Message(
        "The database {name} has the encoding {encoding}; Onboard needs UTF8.",
        "Create another one: createdb --encoding UTF8 --template template0 {name}_utf8",
    ),
    "database-locked": Message("Other transactions use the same tables.", "Try again in a moment."),
    "database-password-wrong": Message(
        "The database {place} refuses the password.",
        "Correct user and password in ONBOARD_DATABASE_URL: postgresql://USER:PASSWORD@HOST/NAME",
    ),
    "database-pooler-mode": Message(
        "The pooler in front of the database {place} does not support transactions: {reason}.",
        "Set its pool_mode to transaction or session.",
    ),
    "database-pooler-statements": Message(
        "A pooler in front of the database {place} loses prepared statements: {reason}.",
        "Set ONBOARD_DATABASE_PREPARED_STATEMENTS=false wherever Onboard runs.",
    ),
    "database-read-only": Message(
        "The database {place} is read-only: {reason}.",
        ("Set ONBOARD_DATABASE_URL to the primary, not a replica. A primary may also refuse if its disk is full."),
    ),
    "database-right-missing": Message(
        "The user of the database {place} lacks a permission: {reason}.",
        "Make that user its owner: ALTER DATABASE {database} OWNER TO {username}",
    ),
    "database-server-damaged": Message("The database {place} is damaged: {reason}.", "Restore it from a backup."),
    "database-server-disk-full": Message(
        "The disk of the database {place} is full: {reason}.", "Free some space, then try again."
    ),
    "database-unreachable": Message("The database cannot be reached.", "Try again in a moment."),
    "database-unreachable-at": Message(
        "The database {place} cannot be reached: {reason}.",
        "Start PostgreSQL, or correct ONBOARD_DATABASE_URL. `onboard doctor` checks the connections.",
    ),
    "database-url-parameter": Message(
        "ONBOARD_DATABASE_URL has the parameter {parameter!r}, which the driver of PostgreSQL does not know.",
        "Remove it; PostgreSQL's documentation of libpq lists the parameters (sslmode, sslrootcert, …).",
    ),
    "database-url-parameter-of-pooler": Message(
        "ONBOARD_DATABASE_URL has the parameter {parameter!r}, which the driver of PostgreSQL does not know.",
        "Remove it. Behind a transaction pooler set ONBOARD_DATABASE_PREPARED_STATEMENTS=false.",
    ),
    "database-url-password": Message(
        "ONBOARD_DATABASE_URL has an @ or / after its password, which is cut off there.",
        "Percent-encode user and password: @ is %40, / is %2F, ? is %3F, # is %23, % is %25.",
    ),
    "database-url-unusable": Message(
        "{named} is not a database that Onboard can use.",
        "Set ONBOARD_DATABASE_URL to postgresql://user:password@host/name, or unset it for SQLite.",
    ),
    "home-disk-full": Message("The disk of {home} is full.", "Free some space, then try again."),
    "home-file-not-writable": Message(
        "{file} cannot be written: {reason}.",
        "Make the user who runs onboard the owner of {home}: chown -R USER {home}",
    ),
    "home-not-writable": Message(
        "Onboard cannot keep its data in {home}: {reason}.", "Set ONBOARD_HOME to a folder that you can write to."
    ),
    "hypernetwork-changed": Message(
        "The base's hypernetwork is now at version {head}, not {expected}.",
        "Check it, then try again: onboard hypernetwork list",
    ),
    "hypernetwork-not-usable": Message(
        "Hypernetwork version {version} {reason}.", "List the available ones with: onboard hypernetwork list"
    ),
    "job-cancelled-before-restore": Message(
        "The job was cancelled while it ran, and the service was restored from a backup since.",
        "Submit it again if it is still needed.",
    ),
    "job-needs-no-retry": Message(
        "Job {job} is {state}; only a job that failed, died or was cancelled can be retried.",
        "See it with: onboard jobs show {job}",
    ),
    "job-task-deleted": Message(
        "The task of job {job} was deleted, and its rows with it.",
        "Submit the dataset again: onboard submit --dataset FILE",
    ),
    "key-in-use": Message("The key {key!r} already belongs to job {job}, a different request.", "Use another --key."),
    "labels-differ": Message(
        "Task {task!r} has other labels: {had} instead of {now}.",
        "Choose another name with --task, or pass --new-labels.",
    ),
    "label-types-differ": Message(
        "The labels of task {task!r} are {had}, and those of these rows are {now}: text and numbers differ.",
        "Write the labels as the task has them, or pass --new-labels.",
    ),
    "task-kind-differs": Message(
        "Task {task!r} is of kind {present}, and these rows are of kind {wanted}.",
        "Choose another name with --task, or pass --new-labels.",
    ),
    "prior-refitted-meanwhile": Message(
        "The prior was refitted by another process meanwhile.", "List its versions with: onboard prior list"
    ),
    "rows-dangling": Message(
        "{rows} rows refer to rows that do not exist; nothing was changed.", "Restore the database from a backup."
    ),
    "s3-key-incomplete": Message("{missing} is not set, but its counterpart is.", "Set {missing}, or unset both."),
    "schema-ahead": Message(
        "The database's schema ({found}) is newer than this code ({wanted}), which does not know all of its tables.",
        "Run this with the newest version of onboard that uses the database.",
    ),
    "schema-missing": Message("The database has no tables yet.", "Run: onboard db upgrade"),
    "schema-outdated": Message("The database's schema is older ({found}) than this code.", "Run: onboard db upgrade"),
    "schema-too-new": Message(
        "{whose} ({found}) is newer than this code ({wanted}).",
        "Install the version of onboard that made it, or a later one.",
    ),
    "service-not-empty": Message(
        "The service is not empty: {named}.", "Restore into a new ONBOARD_HOME or a new database."
    ),
    "shard-fenced": Message(
        "Attempt {attempt} no longer owns shard {shard} of job {job}.",
        "No action is needed: the later attempt continues.",
    ),
    "sqlite-damaged": Message(
        "The database {file} is damaged: {reason}.",
        "Move it away with its log, then restore a backup: mv {file}* ELSEWHERE && onboard restore BACKUP",
    ),
    "sqlite-disk-failed": Message(
        "The disk of the database {file} failed: {reason}.",
        "Check the disk (dmesg), then try again.",
    ),
    "sqlite-forbidden": Message(
        "The database {file} cannot be written: {reason}.",
        "Make its folder writable, or set ONBOARD_HOME to a folder that you can write to.",
    ),
    "sqlite-unusable": Message("The database {file} cannot be used: {reason}.", "Try again in a moment."),
    "tables-of-other-program": Message(
        "The database contains tables of another program: {tables}.",
        "Set ONBOARD_DATABASE_URL to a database that only Onboard uses.",
    ),
    "token-name-ambiguous": Message("{count} tokens are named {which!r}.", "Use the id of one: {ids}"),
    "unknown-alias": Message("There is no {task}@{alias}.", "List them with: onboard versions {task}"),
    "unknown-dataset": Message("There is no dataset {digest}.", "Submit the dataset again: onboard submit FILE"),
    "unknown-hypernetwork-version": Message(
        "There is no hypernetwork version {version} of this base.", "List them with: onboard hypernetwork list"
    ),
    "unknown-job": Message("There is no job {job}.", "List them with: onboard jobs list"),
    "prior-not-fitted": Message(
        "No prior ({form}) of the base {base} has been fitted to its current lessons yet.",
        "Submit a task on this base, or fit the prior now: onboard prior refit",
    ),
    "unknown-prior-version": Message(
        "There is no version {version} of this base's prior ({form}).", "List them with: onboard prior list"
    ),
    "unknown-registered-base": Message("There is no base {name_or_digest!r}.", "List them with: onboard base list"),
    "unknown-session": Message("There is no session {session!r}.", "List them with: onboard token sessions"),
    "unknown-task": Message("There is no task {task!r}.{guess}", "List them with: onboard tasks list"),
    "unknown-token": Message("There is no token {token!r}.", "List them with: onboard token list"),
    "unknown-version": Message("There is no {task}@v{version}.", "List them with: onboard versions {task}"),
    "unknown-version-reference": Message("There is no {named}.", "List its versions with: onboard versions {task}"),
    "unknown-worker": Message("There is no worker {worker!r}.", "List them with: onboard workers list"),
    "value-not-storable": Message(
        "A value cannot be stored: it contains a NUL or half a surrogate pair, or is too large.",
        "Correct it, then try again.",
    ),
    "version-being-rebuilt": Message(
        "{version} descends from the deleted task {deleted} and is being rebuilt without it.",
        "Wait for its job: onboard jobs list --task {name}",
    ),
    "version-not-yet-learned": Message(
        "There is no {named} yet: a job is learning the task, {where}.", "Wait for it with: onboard jobs watch {job}"
    ),
    "version-number-missing": Message("{reference!r} does not have a version number.", "Pass a version: TASK@vN"),
    "worker-name-taken": Message(
        "A worker called {worker!r} is already running (process {pid} on {host}).", "Choose another --name."
    ),
    "worker-not-alive": Message("There is no live worker {worker!r}.", "List them with: onboard workers list"),
}
