"""Messages about the client of a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

CLIENT: Final[Mapping[str, Message]] = {
    "alias-moved-meanwhile": Message(
        "{task}@{alias} is now v{version}: {actor} moved it in the meantime.", "Reload the alias, then decide."
    ),
    "answer-count-differs": Message(
        "{place} answered {answered} of {asked} texts under 'predictions'.",
        "Report it to the operators of the service.",
    ),
    "answer-key-missing": Message(
        "The response of {place} lacks {missing!r}, which this client needs.",
        "Check ONBOARD_API_URL, and that service and client are the same release: onboard doctor",
    ),
    "answer-key-wrong": Message(
        "The response of {place} has {shown} under {wrong!r}, {reason}.",
        "Check ONBOARD_API_URL, and that service and client are the same release: onboard doctor",
    ),
    "answer-not-json": Message("{place} answered with something other than JSON.", "Check ONBOARD_API_URL."),
    "answer-not-object": Message("{place} answered with something other than a JSON object.", "Check ONBOARD_API_URL."),
    "answer-unreadable": Message(
        "This client cannot read the response of {place}: {reason}.",
        "Check ONBOARD_API_URL, and that service and client are the same release: onboard doctor",
    ),
    "base-file-name-invalid": Message(
        "The base has a file called {name!r}.", "Report it to the operators of the service."
    ),
    "base-not-storable": Message("The base cannot be stored: {reason}.", "Free some space."),
    "cache-without-home": Message(
        "There is no home folder for the cache.", "Pass a folder: Onboard(url, token, cache=FOLDER)"
    ),
    "certificate-not-trusted": Message(
        "The service at {url} has a certificate that this machine does not trust: {reason}.",
        "Set SSL_CERT_FILE to the certificate of the authority that signed it.",
    ),
    "embedding-fact-missing": Message(
        "The embedding of {asked} lacks a fact: {reason}.", "Check the service with: onboard doctor"
    ),
    "embedding-of-other-version": Message(
        "{version} was received instead of {asked}.", "Report it to the operators of the service."
    ),
    "embeddings-list-unreadable": Message("The list of embeddings cannot be read.", "Check ONBOARD_API_URL."),
    "embeddings-without-files": Message("The list of embeddings came without its files.", "Check ONBOARD_API_URL."),
    "events-unreadable": Message("The events of the job cannot be read: {reason}.", "Check ONBOARD_API_URL."),
    "http-not-safe": Message(
        "{url} is plain HTTP to another machine, so others could read the token and the texts.",
        (
            "Use https://. In a network that you trust: export ONBOARD_API_INSECURE=true (in Python: "
            "Onboard(…, insecure=True))"
        ),
    ),
    "hypernetwork-not-storable": Message("The hypernetwork cannot be stored: {reason}.", "Free some space."),
    "job-not-ended": Message(
        "Job {job} has not ended within {timeout_seconds:g} s.", "Wait for it with: onboard jobs watch {job}"
    ),
    "not-a-table": Message(
        "{field}: a {kind} is not a table of rows.",
        (
            "Pass a DataFrame, a Dataset, a pyarrow Table, a list of dicts, or a dict of columns: collect() "
            "a lazy frame, Dataset.from_list(list(rows)) of a streamed one."
        ),
    ),
    "readout-without-embedding": Message(
        "{asked} has no embedding: its method, linear, makes a readout alone.",
        (
            "Use weights({asked!r}) for the file, or predict() for answers. A version with an embedding may "
            "follow if the job is still running."
        ),
    ),
    "received-bytes-differ": Message(
        "{part}: the received bytes do not match the announced digest.",
        "Fetch it again, or report it to the operators of the service.",
    ),
    "received-digest-differs": Message(
        "{part} was announced as {promised}, but {came} was received.",
        "Report it to the operators of the service; they can check it with: onboard doctor",
    ),
    "report-not-writable": Message("The report cannot be written to {file}: {reason}.", "Choose another file."),
    "service-unreachable": Message("The service at {url} cannot be reached: {reason}.", "Check ONBOARD_API_URL."),
    "table-column-unfit": Message(
        "{field}: the {kind} cannot be written as rows: {reason}.", "Pass only the columns of text and label."
    ),
    "table-without-task-name": Message(
        "A dataset that is passed as an object has no file name to name the task after.", 'Name the task: task="paws"'
    ),
    "task-only-hidden": Message(
        "The service has an earlier version, which only hid {task!r}.",
        "Upgrade the service, then delete the task again.",
    ),
    "token-characters-invalid": Message(
        "The token contains invalid characters.", "Set ONBOARD_TOKEN to the token alone."
    ),
    "training-split-missing": Message(
        "The {kind} has the splits {splits}: train is missing.",
        'Pass one of them: dataset=splits["NAME"], validation=…, test=…',
    ),
    "unknown-base-of-service": Message("The service has no base {base!r}.", "List them with: onboard base list"),
    "unknown-split": Message(
        "The {kind} has the splits {splits}: {split} is neither train, validation nor test.",
        'Pass one of them: dataset=splits["NAME"], validation=…, test=…',
    ),
    "upload-file-unreadable": Message(
        "{file} cannot be read: {reason}.", "Pass a file that exists and that you may read."
    ),
    "url-invalid": Message("{url!r} is not a URL: {reason}.", "Set ONBOARD_API_URL=https://onboard.example.org"),
    "url-not-http": Message(
        "{url!r} is not an http:// or https:// URL of a service.", "Set ONBOARD_API_URL=https://onboard.example.org"
    ),
    "url-with-credentials": Message(
        "The URL of the service may only contain host, port and path.",
        "Leave user, password, ? and # out; use ONBOARD_TOKEN.",
    ),
    "version-without-weights": Message(
        "{asked} is an embedding; it has no task-specific weights.", "Use embedding({asked!r}) instead."
    ),
    "weights-without-embedding": Message(
        "{asked} has no embedding: its method, {method}, learns task-specific weights instead.",
        "Use weights({asked!r}) for the file, or predict() for answers.",
    ),
}
