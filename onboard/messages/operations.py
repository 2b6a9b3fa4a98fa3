"""Messages about access, backups, webhooks and maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

OPERATIONS: Final[Mapping[str, Message]] = {
    "oidc-not-configured": Message(
        "This service has no OpenID provider to sign in with.", "Sign in with a token, or set ONBOARD_OIDC_ISSUER."
    ),
    "oidc-provider-wrong": Message(
        "The OpenID provider {provider} cannot be used: {reason}.",
        "Check ONBOARD_OIDC_ISSUER and the provider, or sign in with a token.",
    ),
    "oidc-refused": Message(
        "The OpenID provider {provider} did not sign you in: {reason}.", "Sign in again, or with a token."
    ),
    "oidc-state-wrong": Message(
        "This sign-in was begun in another browser, at another address or more than ten minutes ago.",
        "Sign in again, at the address of ONBOARD_OIDC_REDIRECT_URL.",
    ),
    "oidc-token-invalid": Message(
        "The ID token of {provider} is not valid here: {reason}.",
        "Sign in again. If that does not help, compare the clocks, issuer and client id of provider and service.",
    ),
    "oidc-unreachable": Message(
        "The OpenID provider {provider} cannot be reached: {reason}.", "Try again later, or sign in with a token."
    ),
    "oidc-without-scopes": Message(
        "{name} is signed in, but none of the groups in the claim {claim!r} may do anything here.",
        "Ask the operator of the service to name one of your groups in ONBOARD_OIDC_GROUPS.",
    ),
    "quota-without-limits": Message(
        "No limit is given.", "Give a number of jobs, a number of bytes, or both: --max-jobs 20 --max-bytes 1GB"
    ),
    "artifact-not-in-backup": Message("The artifact {digest} is not in {path}.", "Use another backup."),
    "backup-broken-off": Message(
        "The backup in {place} was interrupted before it was complete.", "Repeat it: onboard backup {place}"
    ),
    "backup-damaged": Message("{file} is damaged or not a backup: {reason}.", "Use another backup."),
    "backup-digest-invalid": Message("The backup contains an invalid artifact digest.", "Use another backup."),
    "backup-folder-occupied": Message(
        "{target} contains something other than a backup.", "Choose a new or empty folder."
    ),
    "backup-format-unknown": Message(
        "The backup {place} has format {version}; this code reads format {known}.",
        "Install the version of onboard that made it, or a later one.",
    ),
    "backup-incomplete": Message(
        "The backup is incomplete: {digest} ({kind}) is {problem}{more}.",
        "Use another backup. If the service still runs, repeat onboard backup to complete this one.",
    ),
    "backup-into-store": Message("{target} is the artifact store itself.", "Choose a folder elsewhere."),
    "backup-manifest-damaged": Message("The manifest of the backup {place} is damaged.", "Use another backup."),
    "backup-of-other-service": Message(
        "{target} contains backups of another service ({present}).", "Use a separate folder or file for each service."
    ),
    "backup-part-unreadable": Message("A part of the backup contains no rows: {reason}.", "Use another backup."),
    "backup-row-count-differs": Message(
        "The backup has {count} rows of {name} instead of {rows}.", "Use another backup."
    ),
    "backup-zip-is-folder": Message(
        "{target} would be a folder.", "Backups are folders, or files that are named ….zip."
    ),
    "backup-zip-not-local": Message(
        "{target} is not a file on this machine.", "Use the URL of a folder, which does not end in .zip."
    ),
    "bootstrap-token-unreadable": Message(
        "The bootstrap token {file} cannot be read: {reason}.",
        "Let this user read the file that ONBOARD_BOOTSTRAP_TOKEN_FILE names.",
    ),
    "host-without-token": Message(
        "{host} can be reached from other machines, and there is no token yet.",
        "Create one: onboard token create NAME --scope admin (or set ONBOARD_BOOTSTRAP_TOKEN_FILE)",
    ),
    "maintenance-at-work": Message(
        "Other maintenance is running: {holder}.",
        "Wait until it finishes. If it was killed, try again in {minutes:.0f} minutes.",
    ),
    "session-over": Message(
        "The session is over.", "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one."
    ),
    "sign-in-link-used": Message(
        "This link was already used or is too old. Restart `onboard serve` for a new one.",
        "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one.",
    ),
    "trace-protocol-unsupported": Message(
        "{variable} is {protocol!r}, but Onboard sends traces only by {known}.",
        "Unset {variable}, or set it to {known}. OTEL_EXPORTER_OTLP_ENDPOINT then names the collector's HTTP port, "
        "usually 4318.",
    ),
    "token-not-valid": Message(
        "The token {token!r} is {state}.", "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one."
    ),
    "token-unknown": Message(
        "The token is unknown.", "Send `Authorization: Bearer TOKEN`; `onboard token create` makes one."
    ),
    "unknown-backup": Message(
        "There is no backup in {place}: it has no manifest.json.", "Pass the folder or file of a backup."
    ),
    "webhook-address-private": Message(
        "{host} is {address}, which is not a public address.", "Webhooks go to public addresses only."
    ),
    "webhook-gone": Message(
        "{host} answered with status 410: the receiver is gone.", "Remove it from ONBOARD_WEBHOOK_URLS."
    ),
    "webhook-host-unresolved": Message(
        "The name {host} cannot be resolved: {reason}.",
        "Check the name in ONBOARD_WEBHOOK_URLS; the message is sent again later.",
    ),
    "webhook-refused": Message(
        "{host} answered with status {status}.", "Check the receiver; the message is sent again later."
    ),
    "webhook-unanswered": Message(
        "{host} did not answer: {reason}.", "Check the receiver; the message is sent again later."
    ),
}
