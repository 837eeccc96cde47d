"""The environment of the embedded stack's children, and of whatever is to talk to its stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from embedded.files import hash_key
from embedded.ports import LOOPBACK

# Of the caller's, what would lead a role or boto3 elsewhere than to this stack.
_FOREIGN = frozenset(
    {"STANDINGS_URL", "STANDINGS_KEY", "STANDINGS_KEY_FILE", "STANDINGS_REDIS_URL_FILE"}
    | {"STANDINGS_SUBMIT_KEYS_FILE", "STANDINGS_KAFKA_FILE", "STANDINGS_DYNAMODB_URL_FILE"}
    | {"AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_REGION"}
    | {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE"}
)


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment without what leads away, and no proxy before 127.0.0.1."""
    kept = {name: value for name, value in environment.items() if name not in _FOREIGN}
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, [environment.get(name, ""), LOOPBACK, "localhost"]))
    return kept


def describe_emulator_access() -> dict[str, str]:
    """Return what boto3 wants to see; the emulator looks at none of it but the region."""
    return {
        "AWS_ACCESS_KEY_ID": "embedded",
        "AWS_SECRET_ACCESS_KEY": "embedded",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def describe_settings(
    *, redis_url: str, kafka: str, dynamodb_url: str, api_port: int, submit_key: str, data: Path, prefix: str
) -> dict[str, str]:
    """Return the settings of the roles of an embedded stack, as environment variables."""
    return {
        "STANDINGS_REDIS_URL": redis_url,
        "STANDINGS_REDIS_CLUSTER": "false",
        "STANDINGS_KAFKA": kafka,
        "STANDINGS_DYNAMODB_URL": dynamodb_url,
        "STANDINGS_SUBMIT_KEYS": f"embedded:{hash_key(submit_key)}",
        "STANDINGS_SERVE": "read,submit",
        "STANDINGS_HOST": LOOPBACK,
        "STANDINGS_PORT": str(api_port),
        "STANDINGS_DATA": str(data),
        "STANDINGS_PREFIX": prefix,
        # a broker that came back empty is another log: rebuilds wait so long for the older one's batches
        "STANDINGS_DEADLINE_MS": "5000",
        # the broker waits half of it at each join
        "STANDINGS_KAFKA_SESSION_TIMEOUT_MS": "2000",
        # the emulator is one thread: more at once are no faster, and let everybody else wait
        "STANDINGS_REBUILD_QUERIES": "2",
        **describe_emulator_access(),
    }
