"""Which deployment a command is about: a stack on this machine, an address over HTTP, or the roles' own settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from embedded.environment import describe_emulator_access, describe_settings
from embedded.stack import Stack, find_stack
from schemas.errors import StandingsError
from schemas.settings import Settings, load_settings

DEFAULT_DATA = Path(".standings")
DEFAULT_URL = "http://127.0.0.1:8080"
_STORES = ("STANDINGS_DYNAMODB_URL", "STANDINGS_KAFKA", "STANDINGS_REDIS_URL")


class NoTarget(StandingsError):
    """Nothing tells which deployment is meant."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a deployment is. `stack` is there when it runs on this machine."""

    url: str
    key: str
    stack: Stack | None

    def settings(self, environment: Mapping[str, str] | None = None) -> Settings:
        """The settings by which its stores are reached: the stack's, else those of this process' environment.

        Puts the emulator's made-up credentials into the environment, where boto3 looks for them.
        """
        environment = os.environ if environment is None else environment
        if self.stack is None:
            if not any(
                name in environment or f"{name}_FILE" in environment
                for name in (*_STORES, "AWS_REGION", "AWS_DEFAULT_REGION")
            ):
                raise NoTarget(
                    "this command talks to the stores themselves: run it where `standings up` runs, name its folder "
                    "with --data or STANDINGS_DATA, or set the roles' settings (STANDINGS_DYNAMODB_URL, "
                    "STANDINGS_KAFKA, STANDINGS_REDIS_URL, AWS_REGION)"
                )
            return load_settings(environment)
        os.environ.update(describe_emulator_access())
        return load_settings(dict(environment) | stack_settings(self.stack))


def find_target(data: Path | None) -> Target:
    """The deployment that --data, STANDINGS_DATA, STANDINGS_URL or a stack in this folder name, in this order.

    Raises NoTarget when a folder is named and no stack runs there.
    """
    named = data or (Path(folder) if (folder := os.environ.get("STANDINGS_DATA")) else None)
    url, key = os.environ.get("STANDINGS_URL", "").rstrip("/"), os.environ.get("STANDINGS_KEY", "")
    if data is not None or (named is not None and not url):
        stack = find_stack(named, None)
        if stack is None:
            raise NoTarget(f"no stack is running in {named}: start it with `standings up --data {named}`")
        return Target(stack.api, stack.submit_key, stack)
    if url:
        stack = find_stack(named, None)
        stack = stack if stack is not None and stack.api == url else find_stack(None, url)
        return Target(url, key or (stack.submit_key if stack else ""), stack)
    stack = find_stack(DEFAULT_DATA, None) or find_stack(None, DEFAULT_URL)
    if stack is not None:
        return Target(stack.api, stack.submit_key, stack)
    return Target(DEFAULT_URL, key, None)


def stack_settings(stack: Stack) -> dict[str, str]:
    """The roles' settings of a stack on this machine."""
    return dict(
        describe_settings(
            redis_url=stack.redis,
            kafka=stack.kafka,
            dynamodb_url=stack.dynamodb,
            api_port=int(stack.api.rpartition(":")[2]),
            submit_key=stack.submit_key,
            data=Path(stack.data),
            prefix=stack.prefix,
        )
    )
