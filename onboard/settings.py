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
from onboard.domain.root_path import read_root_path
from onboard.domain.webhook import Webhooks
from onboard.errors import InputError, NotAllowedError

__all__ = ["Settings"]

LogFormat = Literal["auto", "json", "text"]
_RootPath = Annotated[str, AfterValidator(read_root_path)]
_SWITCHES: Final = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
SECRETS: Final = "/run/secrets"  # where Docker mounts them; Kubernetes where one says
_DAYS: Final = ("days", "a whole number of days, 0 for ever")
_COUNTS: Final = {
    "retention_job_days": _DAYS, "retention_event_days": _DAYS, "retention_audit_days": _DAYS,
    "requests_per_minute": ("requests", "a whole number, 0 for any number"),
}  # fmt: skip
_OF_A_SERVICE: Final = ("api_url", "token", "api_insecure")  # one place gives them all, or a token goes astray


class Settings(BaseSettings):
    """What the environment says. Nothing set is the embedded default: all under one folder, no server to start."""

    model_config = SettingsConfigDict(env_prefix="ONBOARD_", env_file_encoding="utf-8", extra="ignore", frozen=True)

    home: Path = Field(
        default_factory=lambda: Path.home() / ".onboard",
        description="Folder of the embedded default: database, broker, artifacts, logs.",
    )
    database_url: str = Field(default="", description="SQLAlchemy URL; empty means SQLite in the home folder.")
    database_prepared_statements: bool = Field(
        default=True,
        description="Whether PostgreSQL prepares statements; false behind a pooler that pools transactions.",
    )
    broker_url: str = Field(default="", description="Celery broker URL; empty means filesystem:// in the home folder.")
    artifact_url: str = Field(
        default="", description="fsspec URL of the artifact store; empty means a folder in the home folder."
    )
    base: str = Field(default="mini", description="Name or folder of the base that new tasks are learned on.")
    device: str = Field(default="auto", description="auto, cpu, cuda or cuda:N.")
    job_time_limit_seconds: float | None = Field(
        default=None,
        description="How long an attempt of a job may take that names no limit itself; empty means for ever.",
    )
    log_format: LogFormat = Field(
        default="auto", description="How workers log: json, text, or auto: text on a terminal, else json."
    )
    traces: bool = Field(
        default=False,
        description="Whether jobs and requests are traced by OpenTelemetry, whose own variables say where to.",
    )
    retention_job_days: int = Field(
        default=0,
        description="Days after its end that a job which published nothing keeps its row; 0 means for ever.",
    )
    retention_event_days: int = Field(
        default=90,
        description="Days after its end that a job keeps the progress in its log, and its stage outputs for a retry; "
        "0 means for ever.",
    )
    retention_audit_days: int = Field(
        default=0, description="Days that an entry of the audit log is kept; 0 means for ever."
    )
    start_worker: bool = Field(
        default=True, description="Whether, on the embedded default, what is submitted starts a worker."
    )
    bootstrap_token_file: Path | None = Field(
        default=None,
        description="File with a token of every scope that `onboard serve` lets in, for a start without a person.",
    )
    allowed_hosts: str = Field(
        default="",
        description="Names by which `onboard serve` may be asked, beside localhost, its machine's and addresses.",
    )
    requests_per_minute: int = Field(
        default=6000,
        description="Requests that `onboard serve` answers a caller in a minute; 0 means any number.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Addresses or networks of proxies whose X-Forwarded-For and -Proto `onboard serve` believes.",
    )
    root_path: _RootPath = Field(default="", description="Path below which a proxy offers `onboard serve`; empty is /.")
    hub_owners: str = Field(
        default="",
        description="Owners on the Hugging Face hub, separated by spaces, whose public datasets `onboard serve` reads "
        "for others; * for everybody's.",
    )
    hub_token_owners: str = Field(
        default="",
        description="Owners whose datasets it reads for others with its own hub token, private ones too.",
    )
    signing_key: Path | None = Field(
        default=None, description="File with the private key that `onboard push` signs with; PEM, an elliptic curve's."
    )
    trusted_key: Path | None = Field(
        default=None,
        description="File with the public key by which whatever `onboard pull` takes must be signed.",
    )
    api_url: str = Field(default="", description="URL of a remote service; when set the commands talk to it.")
    token: SecretStr = Field(default=SecretStr(""), description="Bearer token for the remote service.")
    api_insecure: bool = Field(
        default=False, description="Whether a remote service beyond this machine may be asked by plain http://."
    )

    webhook_urls: str = Field(
        default="", description="URLs, separated by spaces, that are told of published versions and moved aliases."
    )
    webhook_hosts: str = Field(default="", description="Hosts, separated by spaces, that those URLs may name.")
    webhook_secret: SecretStr = Field(
        default=SecretStr(""), description="Secrets (whsec_…), separated by spaces, that the messages are signed with."
    )
    webhook_insecure: bool = Field(
        default=False, description="For tests: webhooks may use http:// and addresses of private networks."
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
        """The environment wins over secret files such as /run/secrets/onboard_database_url, and these over `.env`."""
        return init_settings, env_settings, _SecretFiles(settings_cls), _PresentFolder(settings_cls)

    @field_validator("home", "device", "bootstrap_token_file", "signing_key", "trusted_key", mode="before")
    @classmethod
    def _know_empty(cls, given: Any, info: ValidationInfo) -> Any:
        """Empty, as Compose and CI set what nobody gave a value, is not set; it is not the present folder."""
        field = cls.model_fields[str(info.field_name)]
        return given if str(given or "").strip() else field.get_default(call_default_factory=True)

    @field_validator("base")
    @classmethod
    def _resolve_folder(cls, base: str) -> str:
        """A folder is made absolute, so that a worker elsewhere means the same; empty is the default."""
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
        "webhook_insecure", "api_insecure", "start_worker", "traces", "database_prepared_statements", mode="before"
    )
    @classmethod
    def _know_switch(cls, given: Any, info: ValidationInfo) -> bool:
        switch = str(given).strip().lower() or str(cls.model_fields[str(info.field_name)].default).lower()
        if switch not in _SWITCHES:
            raise InputError("setting-not-boolean", setting=str(info.field_name).upper(), value=given)
        return _SWITCHES[switch]

    @model_validator(mode="after")
    def _know_webhooks(self) -> Self:
        _ = self.webhooks, self.hub_terms  # raises where they are wrong, before anything begins
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
        """Who is told of what was published, and how the messages are signed. It makes no connection."""
        secret = self.webhook_secret.get_secret_value()
        return Webhooks.parse(self.webhook_urls, self.webhook_hosts, secret, insecure=self.webhook_insecure)

    @property
    def hub_terms(self) -> HubTerms:
        """Whose datasets of the hub are read for those who come by HTTP."""
        return HubTerms.parse(self.hub_owners, self.hub_token_owners)

    def for_worker(self) -> dict[str, Any]:
        """What a worker needs to know, as JSON-compatible values with secrets in them: for a pipe, nothing else."""
        facts = self.model_dump(mode="json", exclude=set(_OF_A_SERVICE))
        return {**facts, "webhook_secret": self.webhook_secret.get_secret_value()}

    @property
    def resolved_home(self) -> Path:
        """The home folder as an absolute path."""
        return self.home.expanduser().resolve()

    @property
    def resolved_database_url(self) -> str:
        """The database's URL, with the embedded default filled in. postgresql:// means psycopg 3."""
        if not self.database_url:
            return embedded_url(self.resolved_home)
        return server_url(self.database_url, prepared=self.database_prepared_statements)

    @property
    def resolved_broker_url(self) -> str:
        """The broker's URL, with the embedded default filled in."""
        return self.broker_url or "filesystem://"

    @property
    def resolved_artifact_url(self) -> str:
        """The artifact store's URL, with the embedded default filled in."""
        return self.artifact_url or str(self.resolved_home / "artifacts")

    @property
    def embedded(self) -> bool:
        """Whether database and broker are the embedded ones; only then is anything started by itself."""
        return not self.database_url and not self.broker_url


class _SecretFiles(SecretsSettingsSource):
    """Settings in files named like their variables, in ONBOARD_SECRETS_DIR; a folder that is not there has none.

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
    """Settings in `.env` of the present folder, which may be anybody's: a checkout, a download.

    Raises:
        InputError: it is no text.
        NotAllowedError: it cannot be read, or names where a token of elsewhere would be sent, or the reverse.
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
        here = [name for name in _OF_A_SERVICE if facts.get(name) and name not in self.current_state]
        elsewhere = [name for name in _OF_A_SERVICE if self.current_state.get(name)]
        if here and elsewhere and "api_url" in (*here, *elsewhere):
            raise NotAllowedError(
                "token-beside-other-url",
                here=_variables(here),
                env_file=Path(".env").absolute(),
                elsewhere=_variables(elsewhere),
            )
        return facts


def _variables(names: Sequence[str]) -> str:
    return " and ".join(f"ONBOARD_{name.upper()}" for name in names)


def environment_without_settings() -> dict[str, str]:
    """The environment for a process that is given its settings otherwise, so that no token or password stands in it."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("ONBOARD_")}


def cuda_visible_devices() -> str | None:
    """The GPUs that CUDA lets this process see, as its own variable names them; None when it names none."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def switch_off_mlflow_telemetry() -> None:
    """Keep MLflow's client, where it is imported later, from telling its makers how it is used; unless it is set."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
