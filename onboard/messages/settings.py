"""Messages about settings and webhooks of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

SETTINGS: Final[Mapping[str, Message]] = {
    "env-file-not-utf8": Message("{file} is not UTF-8: byte {byte} is invalid.", "Save it as UTF-8, or remove it."),
    "env-file-unreadable": Message("{file} cannot be read: {reason}.", "Let this user read it."),
    "root-path-invalid": Message(
        "ONBOARD_ROOT_PATH is {given!r}, which is not the path of a proxy.",
        "Set it to a path such as /onboard, or unset it.",
    ),
    "secret-unreadable": Message(
        "The secret {file} cannot be read by user {user}.",
        "Let that user read the file, or set the variable of its name.",
    ),
    "setting-not-address": Message(
        "ONBOARD_TRUSTED_PROXIES has {address!r}, which is not an address or network.",
        "Set it to addresses such as 10.0.0.7 or networks such as 10.0.0.0/8.",
    ),
    "setting-not-boolean": Message(
        "ONBOARD_{setting} is {value!r}, which is neither true nor false.", "Set it to true or false, or unset it."
    ),
    "setting-not-number": Message(
        "ONBOARD_{setting} is {value!r}, which is not a number of {unit}.", "Set it to {example}, or unset it."
    ),
    "setting-not-seconds": Message(
        "ONBOARD_JOB_TIME_LIMIT_SECONDS is {value!r}, which is not a number of seconds.",
        "Set it to a positive number, or unset it.",
    ),
    "token-beside-other-url": Message(
        (
            "{here} comes from {env_file}, and {elsewhere} does not: a token is only sent to the "
            "URL that is set in the same place."
        ),
        "Set both in one place: the environment, or .env.",
    ),
    "unknown-log-format": Message(
        "ONBOARD_LOG_FORMAT is {value!r}, which is not a log format.", "Set it to one of: {formats}."
    ),
    "webhook-host-not-allowed": Message(
        "The webhook to {host} is not allowed.", "Allow that host: ONBOARD_WEBHOOK_HOSTS={host}"
    ),
    "webhook-hosts-not-separated": Message(
        "ONBOARD_WEBHOOK_HOSTS has several hosts in one entry.", "Separate hosts by spaces."
    ),
    "webhook-not-https": Message("The webhook to {host} does not use https://.", "Use an https:// URL."),
    "webhook-secret-invalid": Message(
        "ONBOARD_WEBHOOK_SECRET is not whsec_ and {least} to {most} bytes in base64.",
        "Create one: echo whsec_$(openssl rand -base64 32)",
    ),
    "webhook-secret-missing": Message(
        "ONBOARD_WEBHOOK_URLS is set, but ONBOARD_WEBHOOK_SECRET is not.",
        "Create one: echo whsec_$(openssl rand -base64 32)",
    ),
    "webhook-url-invalid": Message(
        "ONBOARD_WEBHOOK_URLS has an entry that is not a URL: {reason}.", "Write each as https://HOST/PATH."
    ),
    "webhook-url-wrong": Message(
        "ONBOARD_WEBHOOK_URLS has an entry that is not like https://HOST/PATH.",
        "Separate URLs by spaces, and leave out user names and passwords: messages are signed instead.",
    ),
    "webhook-urls-not-separated": Message(
        "ONBOARD_WEBHOOK_URLS has several URLs in one entry.", "Separate URLs by spaces."
    ),
}
