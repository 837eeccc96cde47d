"""Settings: one frozen model, read once from the environment (STANDINGS_*), secrets from files too."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from schemas.ids import check_leaderboard_id
from schemas.keys import Names

PREFIX = "STANDINGS_"
_KEY_LINE = re.compile(r"([A-Za-z0-9_.-]{1,64}):([0-9a-f]{64})(?::([a-z0-9,-]+))?", re.ASCII)

Role = Literal["read", "submit"]


class Settings(BaseSettings):
    """Everything that a role needs to be told. Each field is the variable STANDINGS_<NAME>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")] = Field(
        default="lb", description="names the keys, tables, topics and groups of one deployment"
    )
    redis_url: SecretStr = Field(default=SecretStr("redis://127.0.0.1:6379/0"), description="Redis or Valkey")
    redis_cluster: bool = Field(default=False, description="the address is that of a Redis Cluster")
    redis_timeout_s: Annotated[float, Field(gt=0, le=60)] = Field(
        default=1.0, description="bound on one call to Redis, connecting included"
    )
    kafka: str = Field(default="127.0.0.1:9092", description="bootstrap servers, separated by commas")
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="how brokers are spoken to"
    )
    kafka_sasl_mechanism: str | None = Field(default=None, description="such as SCRAM-SHA-512")
    kafka_username: str | None = Field(default=None, description="for SASL")
    kafka_password: SecretStr | None = Field(default=None, description="for SASL")
    kafka_ca_file: Path | None = Field(default=None, description="CA certificates for TLS; default: the system's")
    kafka_session_timeout_ms: Annotated[int, Field(ge=500, le=300_000)] = Field(
        default=10_000, description="after so long without a heartbeat an updater's partitions go to others"
    )
    dynamodb_url: str | None = Field(default=None, description="endpoint of DynamoDB; unset: AWS of the region")
    submit_keys: Annotated[SecretStr, NoDecode] = Field(
        default=SecretStr(""),
        description="keys that may submit: `name:sha256-hex[:leaderboard,…]`, separated by spaces",
    )
    serve: Annotated[frozenset[Role], NoDecode, Field(min_length=1)] = Field(
        default=frozenset({"read", "submit"}), description="which routes the API serves: read, submit or both"
    )
    host: str = Field(default="127.0.0.1", description="address that the API listens on")
    port: Annotated[int, Field(ge=1, le=65_535)] = Field(default=8080, description="port that the API listens on")
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default=1, description="processes of the API on this host")
    max_in_flight: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=10_000, description="submitted events that may wait for the log at once; above, 503"
    )
    batch_rows: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1_000, description="rows that one batch of the updater may touch"
    )
    deadline_ms: Annotated[int, Field(ge=1_000, le=60_000)] = Field(
        default=10_000, description="D of the recovery protocol: the age at which a fetched batch may no longer write"
    )
    clock_skew_ms: Annotated[int, Field(ge=0, le=60_000)] = Field(
        default=500, description="how far the clocks of updaters and brokers may differ"
    )
    rebuild_queries: Annotated[int, Field(ge=1, le=64)] = Field(
        default=8, description="queries of the scorebook that a rebuild or an audit has under way at once"
    )
    max_dead_letter_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.9, description="the updater stops when more than this share of recent events would be dead-lettered"
    )
    metrics_port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        default=0, description="port on which an updater or keeper serves its metrics, on STANDINGS_HOST; 0: none"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="what is logged")
    data: Path | None = Field(default=None, description="data folder of an embedded stack")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the names are those of the base class
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What load_settings was given alone: no second look at the environment of the process."""
        return (init_settings,)

    @field_validator("serve", mode="before")
    @classmethod
    def _split_roles(cls, value: Any) -> Any:
        return frozenset(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("submit_keys")
    @classmethod
    def _check_keys(cls, value: SecretStr) -> SecretStr:
        parse_submit_keys(value.get_secret_value())
        return value

    @property
    def names(self) -> Names:
        """The names under this deployment's prefix."""
        return Names(self.prefix)

    def shown(self) -> dict[str, str]:
        """Every setting as text, secrets hidden: what a role prints at its start."""
        return {name: str(getattr(self, name)) for name in type(self).model_fields}


class SubmitKey:
    """A key that may submit: its name, its SHA-256, and the leaderboards it is limited to (None: all)."""

    __slots__ = ("digest", "leaderboards", "name")

    def __init__(self, name: str, digest: bytes, leaderboards: frozenset[str] | None) -> None:
        self.name = name
        self.digest = digest
        self.leaderboards = leaderboards

    def may_write(self, leaderboard: str) -> bool:
        """True where the key is not limited, or this leaderboard is among its own."""
        return self.leaderboards is None or leaderboard in self.leaderboards


def parse_submit_keys(text: str) -> list[SubmitKey]:
    """The keys of STANDINGS_SUBMIT_KEYS; ValueError that names the entry (never its hash) that is malformed."""
    keys = []
    for number, line in enumerate(text.split(), 1):
        match = _KEY_LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"entry {number} of the submit keys is not name:sha256-hex[:leaderboard,…]")
        try:
            limited = frozenset(check_leaderboard_id(one) for one in match[3].split(",")) if match[3] else None
        except ValueError as error:
            raise ValueError(f"entry {number} of the submit keys: {error}") from None
        keys.append(SubmitKey(match[1], bytes.fromhex(match[2]), limited))
    return keys


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. A variable `STANDINGS_X_FILE` names a file whose text is the value of X.

    An empty variable counts as unset.

    Raises pydantic's ValidationError for a bad value, and OSError for a file that can't be read.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for name in Settings.model_fields:
        variable = PREFIX + name.upper()
        if path := environment.get(variable + "_FILE"):
            values[name] = Path(path).read_text(encoding="utf-8").strip()
        elif value := environment.get(variable):
            values[name] = value
    return Settings(**values)
