"""Runs the real stores and supervisor under roles that do nothing: `python stack_driver.py DATA PORT [flags]`.

What happens is written to stdout, a line each, so that a test can follow it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from embedded import processes, up
from embedded.children import ChildSpec
from embedded.probes import probe_http, probe_nothing
from embedded.stack import Stack

API = """
import http.server, json, sys, time
mode, began = sys.argv[2], time.monotonic()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        rows = int((time.monotonic() - began) * 10) if mode == "slow" else 7
        whole = mode == "whole" or self.path != "/readyz" or mode == "slow" and rows > 25
        lanes = [{"lane": 0, "state": "rebuilding", "progress": rows}, {"lane": 1, "state": "ready", "progress": None}]
        self.send_response(200 if whole else 503); self.end_headers()
        self.wfile.write(json.dumps({"detail": "lane 0 is rebuilding", "lanes": lanes}).encode())
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
)
QUIET = "import time; time.sleep(600)"


def describe(role: str, env: Mapping[str, str], port: int) -> ChildSpec:
    if role == "api":
        mode = next((flag.removeprefix("--boards=") for flag in sys.argv if flag.startswith("--boards=")), "whole")
        return ChildSpec(role, (sys.executable, "-c", API, str(port), mode), env, probe_http(port, "/livez"))
    program = STUBBORN if "--stubborn" in sys.argv else QUIET
    return ChildSpec(role, (sys.executable, "-c", program, role), env, probe_nothing, orphan_signal=signal.SIGKILL)


def has_no_kernel(number: int) -> None:
    """Stand in for what Linux does, as on macOS; `number` is the signal that is not sent."""


def write(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the test reads


def main() -> int:
    if "--without-kernel" in sys.argv:
        setattr(processes, "make_parent_death_hook", has_no_kernel)  # noqa: B010 - mypy holds it to be final
    asked = iter([2, 1, 0])

    def count_unrecorded(_settings: up.Settings) -> int:
        answer = next(asked)
        write(f"unrecorded {answer}")
        return answer

    def ready(stack: Stack) -> None:
        write(f"ready {stack.file}")

    hooks = up.Hooks(
        init=lambda settings: write(f"init {settings['STANDINGS_KAFKA']}"),
        ready=ready,
        count_unrecorded=count_unrecorded,
        after_restart=lambda name, _settings: write(f"after {name}"),
        say=lambda line: write(f"say {line}"),
    )
    patience_s = 1.0 if any(flag.startswith("--boards=") for flag in sys.argv) else 60.0
    options = up.UpOptions(data=Path(sys.argv[1]), port=int(sys.argv[2]), ready_timeout_s=patience_s)
    return up.run(options, hooks, describe)


if __name__ == "__main__":
    sys.exit(main())
