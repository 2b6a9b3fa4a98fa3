"""Settings: the only reader of the environment (and of `.env`)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from onboard.domain.database_url import embedded_url, server_url
from onboard.domain.hub_terms import HubTerms
from onboard.domain.open_id import OpenIdTerms, read_terms
from onboard.domain.root_path import read_root_path
from onboard.domain.webhook import Webhooks
from onboard.errors import InputError, NotAllowedError

__all__ = ["Settings"]

LogFormat = Literal["auto", "json", "text"]
_RootPath = Annotated[str, AfterValidator(read_root_path)]
_SWITCHES: Final = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
SECRETS: Final = "/run/secrets"  # where Docker mounts secrets; in Kubernetes the path is configured
_DAYS: Final = ("days", "a whole number of days; 0 means for ever")
_COUNTS: Final = {
    "retention_job_days": _DAYS, "retention_event_days": _DAYS, "retention_audit_days": _DAYS,
    "retention_drift_days": _DAYS,
    "requests_per_minute": ("requests", "a whole number; 0 means no limit"),
}  # fmt: skip
# all from one source, so that a token is never sent to another URL
_OF_A_SERVICE: Final = ("api_url", "token", "api_insecure")


class Settings(BaseSettings):
    """The settings from the environment. By default everything is in one folder, and no services are needed."""

    model_config = SettingsConfigDict(env_prefix="ONBOARD_", env_file_encoding="utf-8", extra="ignore", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path.home() / ".onboard",
        description="Folder of embedded mode: database, broker, artifacts, logs.",
    )
    database_url: str = Field(
        default="", description="`postgresql://user:password@host/name`; default: SQLite in the home folder."
    )
    database_prepared_statements: bool = Field(
        default=True,
        description="Whether to use prepared statements on PostgreSQL; set it to false behind a transaction pooler.",
    )
    broker_url: str = Field(
        default="",
        description="`redis://user:password@host:6379/0`, or `rediss://…` for TLS; default: files in the home folder.",
    )
    artifact_url: str = Field(
        default="",
        description="A folder, `s3://bucket/prefix` or another fsspec URL; default: a folder in the home folder.",
    )
    base: str = Field(default="mini", description="Name or folder of the base for new tasks.")
    device: str = Field(default="auto", description="auto, cpu, cuda or cuda:N.")
    job_time_limit_seconds: float | None = Field(
        default=None,
        description="Limit for an attempt of a job without `--time-limit`, set for workers; default: none.",
    )
    log_format: LogFormat = Field(
        default="auto", description="Log format of workers: json, text, or auto (text on a terminal, otherwise json)."
    )
    traces: bool = Field(
        default=False,
        description="Whether to trace jobs and requests with OpenTelemetry; set for workers and `onboard serve`.",
    )
    retention_job_days: int = Field(
        default=0,
        description="Days to keep jobs that published nothing, after their end; 0 means for ever.",
    )
    retention_event_days: int = Field(
        default=90,
        description="Days to keep the progress in a finished job's log, and its stage outputs for retries; 0 "
        "means for ever.",
    )
    retention_drift_days: int = Field(
        default=92, description="Days to keep the daily numbers about predicted texts; 0 means for ever."
    )
    retention_audit_days: int = Field(default=0, description="Days to keep entries of the audit log; 0 means for ever.")
    drift: bool = Field(
        default=True,
        description="Whether to keep daily numbers about predicted texts, never the texts, to detect drift.",
    )
    start_worker: bool = Field(default=True, description="Whether `submit` starts a worker in embedded mode.")
    bootstrap_token_file: Path | None = Field(
        default=None,
        description="File with a token of every scope for `onboard serve`, for unattended setups.",
    )
    allowed_hosts: str = Field(
        default="",
        description="Host names that `onboard serve` accepts, separated by spaces, in addition to localhost, "
        "the machine's name and IP addresses.",
    )
    requests_per_minute: int = Field(
        default=6000,
        description="Requests per minute that `onboard serve` accepts from one token, or from one address "
        "without a token; 0 means no limit.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks of proxies, separated by spaces, whose X-Forwarded-For and "
        "X-Forwarded-Proto `onboard serve` trusts.",
    )
    root_path: _RootPath = Field(
        default="", description="Path below which a proxy offers `onboard serve`, such as /onboard."
    )
    oidc_issuer: str = Field(
        default="",
        description="URL of the OpenID provider that people sign in to the pages with, as its tokens name it.",
    )
    oidc_client_id: str = Field(default="", description="Client id of this service at the OpenID provider.")
    oidc_client_secret: SecretStr = Field(
        default=SecretStr(""), description="Client secret of this service at the OpenID provider."
    )
    oidc_redirect_url: str = Field(
        default="",
        description="Address of `/login/oidc/callback` as browsers see it, with the root path; registered at the "
        "OpenID provider.",
    )
    oidc_groups: str = Field(
        default="",
        description="Scopes of groups at the OpenID provider: `engineers=read,submit; operators=read,ops`.",
    )
    oidc_groups_claim: str = Field(default="groups", description="Claim of the ID token with a person's groups.")
    oidc_name_claim: str = Field(
        default="email", description="Claim of the ID token with a person's name; a verified `email` or another one."
    )
    oidc_scopes: str = Field(
        default="openid email profile", description="OAuth scopes to request from the OpenID provider."
    )
    hub_owners: str = Field(
        default="",
        description="Owners on the Hugging Face hub, separated by spaces, whose public datasets `onboard "
        "serve` may read; * means everyone.",
    )
    hub_token_owners: str = Field(
        default="",
        description="Owners whose public and private datasets `onboard serve` may read with its own hub token.",
    )
    signing_key: Path | None = Field(
        default=None, description="File with the private key for `onboard push`: PEM, elliptic curve."
    )
    trusted_key: Path | None = Field(
        default=None,
        description="File with the public key that must have signed everything `onboard pull` accepts.",
    )
    api_url: str = Field(default="", description="URL of a remote service; if set, commands use it.")
    token: SecretStr = Field(default=SecretStr(""), description="Bearer token for the remote service.")
    api_insecure: bool = Field(default=False, description="Whether plain http:// to another machine is allowed.")

    webhook_urls: str = Field(
        default="",
        description="URLs, separated by spaces, to notify of published versions, moved aliases and drift; set for "
        "workers.",
    )
    webhook_hosts: str = Field(default="", description="Hosts, separated by spaces, that webhook URLs may use.")
    webhook_secret: SecretStr = Field(
        default=SecretStr(""), description="Secrets (whsec_…), separated by spaces, that sign webhook messages."
    )
    webhook_insecure: bool = Field(
        default=False, description="For tests: allow http:// and private addresses in webhook URLs."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - ours below knows what stands above it
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - would warn wherever the folder is missing
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: environment, then secret files such as /run/secrets/onboard_database_url, then `.env`."""
        return init_settings, env_settings, _SecretFiles(settings_cls), _PresentFolder(settings_cls)

    @field_validator("home", "device", "bootstrap_token_file", "signing_key", "trusted_key", mode="before")
    @classmethod
    def _know_empty(cls, given: Any, info: ValidationInfo) -> Any:
        """Read an empty value as the default, as Compose and CI set empty variables.

        It does not mean the current folder.
        """
        field = cls.model_fields[str(info.field_name)]
        return given if str(given or "").strip() else field.get_default(call_default_factory=True)

    @field_validator("base")
    @classmethod
    def _resolve_folder(cls, base: str) -> str:
        """Make a folder absolute, so that a worker in another folder finds it. An empty value means the default."""
        return str(Path(base).expanduser().resolve()) if "/" in base else base or "mini"

    @field_validator("job_time_limit_seconds", mode="before")
    @classmethod
    def _know_limit(cls, given: Any) -> float | None:
        if given in (None, ""):
            return None
        try:
            seconds = float(given)
        except (TypeError, ValueError):
            seconds = math.nan
        if not (seconds > 0 and math.isfinite(seconds)):
            raise InputError("setting-not-seconds", value=given)
        return seconds

    @field_validator(*_COUNTS, mode="before")
    @classmethod
    def _know_count(cls, given: Any, info: ValidationInfo) -> int:
        text = str(given).strip() or str(cls.model_fields[str(info.field_name)].default)
        if not text.isdecimal():
            counted, whole = _COUNTS[str(info.field_name)]
            raise InputError(
                "setting-not-number", setting=str(info.field_name).upper(), value=given, unit=counted, example=whole
            )
        return int(text)

    @field_validator(
        "webhook_insecure", "api_insecure", "start_worker", "traces", "drift", "database_prepared_statements",
        mode="before",
    )  # fmt: skip
    @classmethod
    def _know_switch(cls, given: Any, info: ValidationInfo) -> bool:
        switch = str(given).strip().lower() or str(cls.model_fields[str(info.field_name)].default).lower()
        if switch not in _SWITCHES:
            raise InputError("setting-not-boolean", setting=str(info.field_name).upper(), value=given)
        return _SWITCHES[switch]

    @model_validator(mode="after")
    def _know_webhooks(self) -> Self:
        _ = self.webhooks, self.hub_terms, self.open_id  # raises InputError if they are invalid, before anything starts
        return self

    @field_validator("trusted_proxies")
    @classmethod
    def _know_proxies(cls, given: str) -> str:
        for address in given.split():
            try:
                ip_network(address)
            except ValueError as error:
                raise InputError("setting-not-address", address=address) from error
        return given

    @field_validator("log_format", mode="before")
    @classmethod
    def _know_format(cls, given: Any) -> str:
        form = str(given).lower() or "auto"
        if form not in get_args(LogFormat):
            raise InputError("unknown-log-format", value=given, formats=list(get_args(LogFormat)))
        return form

    @property
    def webhooks(self) -> Webhooks:
        """Receivers of webhooks, and the keys that sign their messages. Makes no connection."""
        secret = self.webhook_secret.get_secret_value()
        return Webhooks.parse(self.webhook_urls, self.webhook_hosts, secret, insecure=self.webhook_insecure)

    @property
    def hub_terms(self) -> HubTerms:
        """Owners on the Hugging Face hub whose datasets may be read over HTTP."""
        return HubTerms.parse(self.hub_owners, self.hub_token_owners)

    @property
    def open_id(self) -> OpenIdTerms | None:
        """How people sign in by OpenID Connect; None without."""
        given = {
            "oidc_issuer": self.oidc_issuer,
            "oidc_client_id": self.oidc_client_id,
            "oidc_client_secret": self.oidc_client_secret.get_secret_value(),
            "oidc_redirect_url": self.oidc_redirect_url,
        }
        claims = {"groups_claim": self.oidc_groups_claim, "name_claim": self.oidc_name_claim}
        return read_terms(given, root_path=self.root_path, asks=self.oidc_scopes, groups=self.oidc_groups, **claims)

    def for_worker(self) -> dict[str, Any]:
        """The settings of a worker as JSON-compatible values. They contain secrets, so use them only for a pipe."""
        of_pages = {name for name in type(self).model_fields if name.startswith("oidc_")}
        facts = self.model_dump(mode="json", exclude={*_OF_A_SERVICE, *of_pages})
        return {**facts, "webhook_secret": self.webhook_secret.get_secret_value()}

    @property
    def resolved_home(self) -> Path:
        """The home folder as an absolute path."""
        return self.home.expanduser().resolve()

    @property
    def resolved_database_url(self) -> str:
        """The database URL, also in embedded mode. postgresql:// means psycopg 3."""
        if not self.database_url:
            return embedded_url(self.resolved_home)
        return server_url(self.database_url, prepared=self.database_prepared_statements)

    @property
    def resolved_broker_url(self) -> str:
        """The broker URL, also in embedded mode."""
        return self.broker_url or "filesystem://"

    @property
    def resolved_artifact_url(self) -> str:
        """The artifact store URL, also in embedded mode."""
        return self.artifact_url or str(self.resolved_home / "artifacts")

    @property
    def embedded(self) -> bool:
        """Whether this is embedded mode. Only then are workers started automatically."""
        return not self.database_url and not self.broker_url


class _SecretFiles(SecretsSettingsSource):
    """Settings in files named like their variables, in ONBOARD_SECRETS_DIR. A missing folder has no settings.

    Raises:
        NotAllowedError: such a file cannot be read.
    """

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        folder = os.environ.get("ONBOARD_SECRETS_DIR") or SECRETS
        super().__init__(settings_cls, folder if os.access(folder, os.R_OK | os.X_OK) else None)

    def __call__(self) -> dict[str, Any]:
        try:
            return super().__call__()
        except SettingsError as error:
            cause = error.__cause__
            if not isinstance(cause, PermissionError):
                raise
            raise NotAllowedError("secret-unreadable", file=str(cause.filename), user=os.geteuid()) from error


class _PresentFolder(DotEnvSettingsSource):
    """Settings in `.env` of the current folder, which may be untrusted, such as a checkout or a download.

    Raises:
        InputError: the file is not text.
        NotAllowedError: the file cannot be read, or it would send a token from elsewhere to its URL, or its token to
            a URL from elsewhere.
    """

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        file = Path(".env").absolute()
        try:
            super().__init__(settings_cls, env_file=file)
        except UnicodeDecodeError as error:
            raise InputError("env-file-not-utf8", file=file, byte=error.start) from error
        except OSError as error:
            raise NotAllowedError("env-file-unreadable", file=file, reason=error.strerror) from error

    def __call__(self) -> dict[str, Any]:
        facts = super().__call__()
        in_file = [name for name in _OF_A_SERVICE if facts.get(name) and name not in self.current_state]
        elsewhere = [name for name in _OF_A_SERVICE if self.current_state.get(name)]
        if in_file and elsewhere and "api_url" in (*in_file, *elsewhere):
            raise NotAllowedError(
                "token-beside-other-url",
                here=_variables(in_file),
                env_file=Path(".env").absolute(),
                elsewhere=_variables(elsewhere),
            )
        return facts


def _variables(names: Sequence[str]) -> str:
    return " and ".join(f"ONBOARD_{name.upper()}" for name in names)


def environment_of_worker(settings: Settings) -> dict[str, str]:
    """The environment for a process that gets these settings through a pipe: without tokens and passwords.

    It names the home, where bases are found by name.
    """
    others = {name: value for name, value in os.environ.items() if not name.upper().startswith("ONBOARD_")}
    return {**others, "ONBOARD_HOME": str(settings.resolved_home)}


def cuda_visible_devices() -> str | None:
    """The value of CUDA_VISIBLE_DEVICES, the GPUs that this process may use; None if it is not set."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def trace_protocol() -> tuple[str, str]:
    """The OpenTelemetry variable with the protocol of traces, and its value; both empty if none is set."""
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    values = [(name, os.environ[name].strip()) for name in names if os.environ.get(name, "").strip()]
    return values[0] if values else ("", "")


def switch_off_mlflow_telemetry() -> None:
    """Disable the telemetry of MLflow's client, which is imported later, unless the variable is set."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
