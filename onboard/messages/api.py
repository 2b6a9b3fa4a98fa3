"""Messages about HTTP requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

API: Final[Mapping[str, Message]] = {
    "alias-changed-meanwhile": Message("{task}@{alias} {now}.", "Reload the alias, then decide."),
    "bearer-token-missing": Message(
        "The Authorization header contains no bearer token.",
        "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one.",
    ),
    "body-too-large": Message("The request has more than {limit} bytes.", "Send a smaller request."),
    "check-died": Message("The process that checked this dataset died.", "Pass fewer rows; a few thousand are enough."),
    "check-needs-memory": Message(
        "Checking this dataset takes more than {mebibytes:,} MiB of memory.",
        "Pass fewer rows; a few thousand are enough.",
    ),
    "check-needs-time": Message(
        "Checking this dataset takes more than {most_seconds}.", "Pass fewer rows; a few thousand are enough."
    ),
    "client-went-away": Message("The client disconnected before its dataset was checked.", "Send it again."),
    "client-went-away-unanswered": Message(
        "The client disconnected before it was answered.", "Send the request again."
    ),
    "dataset-not-a-file": Message("dataset: this is not a file.", "Send the file of labeled rows as dataset."),
    "dataset-not-one-file": Message(
        "dataset: this is neither one file nor one hf:// name.",
        "Send the file as dataset, with its name.",
    ),
    "file-not-expected": Message(
        "{field}: this field does not take a file.", "Send one file for each of: {file_fields}."
    ),
    "file-too-large": Message(
        "{field}: the file has more than {mebibytes:,} MiB.", "Pass fewer rows; a few thousand are enough."
    ),
    "form-field-not-utf8": Message("{field}: the value is not UTF-8.", "Send UTF-8."),
    "form-field-repeated": Message("{field}: the field is repeated {times} times.", "Send it once."),
    "form-field-too-long": Message("{field}: the field is longer than {limit:,} bytes.", "Shorten it."),
    "form-of-other-origin": Message(
        "Another site sent this form. {said} to {host!r}.",
        (
            "Use a page of this service, or a bearer token. A proxy must forward the Host header with its port "
            "(nginx: proxy_set_header Host $http_host)."
        ),
    ),
    "form-of-other-site": Message(
        "The form was sent from another site.", "Use a page of this service, or a bearer token."
    ),
    "gzip-ratio-too-large": Message(
        "{field}: the file expands to more than {limit} times its compressed size.", "Send it uncompressed."
    ),
    "head-too-large": Message(
        "The address and headers of the request have more than {limit} bytes.",
        "Send a shorter address, or fewer headers and cookies.",
    ),
    "host-header-missing": Message(
        "The Host header is missing.", "Use localhost or an IP address, or add the name to ONBOARD_ALLOWED_HOSTS."
    ),
    "if-match-missing": Message(
        "If-Match is missing.", "Send the ETag of this alias, or If-None-Match: * for a new one."
    ),
    "list-cursor-invalid": Message("Invalid cursor for this list.", "Start again without a cursor."),
    "method-not-allowed": Message("{method} is not possible at {path}.", "See /docs for the methods of this path."),
    "multipart-damaged": Message(
        "The multipart/form-data is damaged.", "Send multipart/form-data with the file as dataset."
    ),
    "no-job-selected": Message("No job is selected.", "Select the jobs, or all that match."),
    "not-multipart": Message(
        "The request is not multipart/form-data.", "Send multipart/form-data with the file as dataset."
    ),
    "part-header-too-long": Message("A header of a part is too long.", "Shorten the file's name."),
    "part-without-name": Message(
        "A part of the form does not have a name.", "Send multipart/form-data with the file as dataset."
    ),
    "port-forbidden": Message("This user may not listen on port {port}.", "Use a port above 1023."),
    "port-unavailable": Message("Onboard cannot listen on {host}:{port}: {reason}.", "Choose another --port."),
    "prediction-too-late": Message(
        "The prediction was not made within {seconds:g} s.", "Repeat the request with fewer texts or more time."
    ),
    "request-invalid": Message("{place}: {reason}.", "See the description of this request at /docs."),
    "request-refused": Message("{reason}", "See the description of this request at /docs."),
    "root-path-taken": Message(
        "ONBOARD_ROOT_PATH is {root!r}, where the service has a page.", "Choose another path, such as /onboard."
    ),
    "service-did-not-start": Message("The service could not start.", "The lines above say why."),
    "service-ending": Message("The service is shutting down.", "Try again later."),
    "service-failed": Message("The service failed.", "See the log of the service."),
    "token-lacks-scope": Message(
        "The token {token!r} does not have the scope '{scope}'.",
        "Use another token, or make one: onboard token create NAME --scope {scope}",
    ),
    "token-missing": Message(
        "This needs a token.", "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one."
    ),
    "too-many-form-parts": Message("The form has more than {limit} parts.", "Send fewer."),
    "too-many-gzip-members": Message("{field}: the gzip file has more than {limit:,} members.", "Compress it again."),
    "too-many-requests": Message("More than {per_minute} requests in a minute.", "Wait {retry_after_seconds} s."),
    "too-many-requests-of-token": Message(
        "This token already has {share} such requests in progress, the most that one token may have.",
        "Try again when one of them has finished.",
    ),
    "too-many-texts-of-token": Message("Too many texts of this token are waiting.", "Try again in a second."),
    "too-many-texts-waiting": Message("Too many predictions are waiting.", "Try again in a second."),
    "too-many-uploads": Message("Too many uploads are being received.", "Try again later."),
    "unknown-family": Message("There is no family {family!r}.", "{remedy}"),
    "unknown-host": Message(
        "This service does not accept the host name {host!r}.",
        "Use localhost or an IP address, or add the name to ONBOARD_ALLOWED_HOSTS.",
    ),
    "unknown-listen-address": Message(
        "{host!r} is not an address of this machine.", "Use --host 127.0.0.1 or 0.0.0.0."
    ),
    "unknown-path": Message("There is nothing at {path}.", "See /docs for the paths of this service."),
    "upload-cut-off": Message("The upload was cut off.", "Send it again."),
    "upload-folder-forbidden": Message(
        "Uploads cannot be stored in {folder}.", "Let the service write to ONBOARD_HOME."
    ),
    "upload-not-stored": Message(
        "The upload cannot be stored: {reason}.", "Free some space on the server, then try again."
    ),
    "upload-too-slow": Message(
        "The upload was slower than {kibibytes_per_second} KiB/s while others waited.",
        "Try again later, or on a faster connection.",
    ),
    "uploads-not-stored": Message("Uploads cannot be stored: {reason}.", "Free some space."),
    "version-without-readout": Message(
        "{version} has no readout.", "List the versions of the task with: onboard versions {task}"
    ),
}
