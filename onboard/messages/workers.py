"""Messages about workers and the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

WORKERS: Final[Mapping[str, Message]] = {
    "broker-certificate-not-trusted": Message(
        "The certificate of the broker {broker} cannot be verified: {reason}.",
        "Add ?ssl_ca_certs=/path/to/ca.pem to ONBOARD_BROKER_URL.",
    ),
    "broker-needs-tls": Message(
        "The broker {broker} requires TLS.",
        (
            "Use rediss:// instead of redis:// in ONBOARD_BROKER_URL; for your own certificate authority add "
            "?ssl_ca_certs=/path/to/ca.pem"
        ),
    ),
    "broker-password-wrong": Message(
        "The broker {broker} refuses the password: {reason}.",
        "Correct user and password in ONBOARD_BROKER_URL: redis://USER:PASSWORD@HOST:PORT/0",
    ),
    "broker-unreachable": Message("The broker cannot be reached.", "Try again later."),
    "broker-unreachable-at": Message(
        "The broker {broker} cannot be reached: {reason}.",
        "Start Redis, or correct ONBOARD_BROKER_URL. `onboard doctor` checks the connections.",
    ),
    "broker-unusable": Message("The broker cannot be used.", "The reason is in the log of the service."),
    "broker-url-database-invalid": Message(
        "The database in ONBOARD_BROKER_URL, after the host and a /, is not a number.",
        "Set ONBOARD_BROKER_URL to redis://USER:PASSWORD@HOST:PORT/0, or to rediss://… for TLS.",
    ),
    "broker-url-file-unusable": Message(
        "{value}, the {parameter} in ONBOARD_BROKER_URL, cannot be used: {reason}.",
        "Use a PEM file that this user can read.",
    ),
    "broker-url-parameter-of-tls": Message(
        "ONBOARD_BROKER_URL has the TLS parameter {parameter!r} but begins with redis://.",
        "Use rediss://, or remove the parameter.",
    ),
    "broker-url-parameter-unknown": Message(
        "ONBOARD_BROKER_URL has the parameter {parameter!r}, which Onboard does not know.",
        "Remove it; the known parameters are {known}.",
    ),
    "broker-url-parameter-wrong": Message(
        "{parameter} in ONBOARD_BROKER_URL is {value!r}.", "Set it to one of: {plain_value}."
    ),
    "broker-url-password-at": Message(
        "ONBOARD_BROKER_URL has an unencoded @ or % in its user name or password.",
        ("Percent-encode user and password: @ is %40, / is %2F, : is %3A, ? is %3F, # is %23, % is %25."),
    ),
    "broker-url-password-slash": Message(
        "ONBOARD_BROKER_URL has an unencoded /, ? or # in its user name or password.",
        ("Percent-encode user and password: @ is %40, / is %2F, : is %3A, ? is %3F, # is %23, % is %25."),
    ),
    "broker-url-port-invalid": Message(
        "The port in ONBOARD_BROKER_URL is not a number from 1 to 65535.",
        "Set ONBOARD_BROKER_URL to redis://USER:PASSWORD@HOST:PORT/0, or to rediss://… for TLS.",
    ),
    "broker-url-scheme-unknown": Message(
        "{named} is not a broker that Onboard can use.{others}",
        "Set ONBOARD_BROKER_URL to redis://USER:PASSWORD@HOST:PORT/0, or to rediss://… for TLS.",
    ),
    "broker-url-unusable": Message(
        "The broker cannot be used with ONBOARD_BROKER_URL ({name}).",
        "Set ONBOARD_BROKER_URL to redis://USER:PASSWORD@HOST:PORT/0, or to rediss://… for TLS.",
    ),
    "broker-url-without-host": Message(
        "ONBOARD_BROKER_URL has no valid host.",
        "Set ONBOARD_BROKER_URL to redis://USER:PASSWORD@HOST:PORT/0, or to rediss://… for TLS.",
    ),
    "broker-without-tls": Message(
        "The broker {broker} does not support TLS.",
        "Use redis:// instead of rediss:// in ONBOARD_BROKER_URL, or enable TLS on the broker.",
    ),
    "claim-fenced": Message("Another attempt owns {name} now.", "No action is needed: the later attempt continues."),
    "claim-stopped": Message("The job of {name} was stopped while it ran.", "Submit it again if it is still needed."),
    "detached-worker-left": Message(
        "The job is waiting: worker {last} has exited. {reason}",
        "{advice}; then start a worker: onboard worker --queue {queue} --idle-exit 60",
    ),
    "job-cancelled": Message("The job was cancelled.", "Submit it again if it is still needed."),
    "job-cancelled-running": Message("Job {job} was cancelled while it ran.", "Submit it again if it is still needed."),
    "job-cancelled-unresponsive": Message(
        "Job {id} was cancelled while it ran; its process did not react and was killed.",
        "Submit it again if it is still needed.",
    ),
    "job-fenced": Message(
        "Attempt {attempt} no longer owns job {job}.", "No action is needed: the later attempt continues."
    ),
    "metrics-host-unknown": Message("This machine has no address {host!r}.", "Correct --metrics-host."),
    "metrics-not-served": Message(
        "Metrics cannot be served on {place}: {reason}.", "Correct --metrics-host or --metrics-port."
    ),
    "metrics-port-forbidden": Message("This user may not listen on {place}.", "Use a --metrics-port above 1023."),
    "metrics-port-taken": Message("Another program already listens on {place}.", "Choose another --metrics-port."),
    "nothing-published": Message(
        "The pipeline ended without publishing a version.",
        "Report it as a bug, with the log of the job: onboard jobs logs JOB",
    ),
    "worker-machine-fails": Message(
        "The worker's machine cannot continue: {reason}.", "The job is retried automatically."
    ),
    "worker-machine-full": Message(
        "The worker's machine cannot continue: {reason} ({error}).",
        "Free some space or memory there; the job is retried automatically.",
    ),
}
