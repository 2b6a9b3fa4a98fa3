"""Settings: the only reader of the environment (and of `.env`)."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What the environment says. Nothing set is the embedded default: all under one folder, no server to start."""

    model_config = SettingsConfigDict(
        env_prefix="ONBOARD_", env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

    home: Path = Field(
        default_factory=lambda: Path.home() / ".onboard",
        description="Folder of the embedded default: database, broker, artifacts, logs.",
    )
    database_url: str = Field(default="", description="SQLAlchemy URL; empty means SQLite in the home folder.")
    broker_url: str = Field(default="", description="Celery broker URL; empty means filesystem:// in the home folder.")
    artifact_url: str = Field(
        default="", description="fsspec URL of the artifact store; empty means a folder in the home folder."
    )
    base: str = Field(default="mini", description="Name or folder of the base that new tasks are learned on.")
    device: str = Field(default="auto", description="auto, cpu, cuda or cuda:N.")
    api_url: str = Field(default="", description="URL of a remote service; when set the commands talk to it.")
    token: SecretStr = Field(default=SecretStr(""), description="Bearer token for the remote service.")

    @field_validator("base")
    @classmethod
    def _resolve_folder(cls, base: str) -> str:
        """A folder is made absolute, so that a worker elsewhere means the same; empty is the default."""
        return str(Path(base).expanduser().resolve()) if "/" in base else base or "mini"

    @property
    def resolved_home(self) -> Path:
        """The home folder as an absolute path."""
        return self.home.expanduser().resolve()

    @property
    def resolved_database_url(self) -> str:
        """The database's URL, with the embedded default filled in. postgresql:// means psycopg 3."""
        if not self.database_url:
            return f"sqlite:///{self.resolved_home / 'onboard.db'}"
        for prefix in ("postgresql://", "postgres://"):
            if self.database_url.startswith(prefix):
                return "postgresql+psycopg://" + self.database_url.removeprefix(prefix)
        return self.database_url

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
