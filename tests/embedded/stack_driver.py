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
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
)
QUIET = "import time; time.sleep(600)"


def describe(role: str, env: Mapping[str, str], port: int) -> ChildSpec:
    if role == "api":
        return ChildSpec(role, (sys.executable, "-c", API, str(port)), env, probe_http(port, "/readyz"))
    program = STUBBORN if "--stubborn" in sys.argv else QUIET
    return ChildSpec(role, (sys.executable, "-c", program, role), env, probe_nothing, orphan_signal=signal.SIGKILL)


def has_no_kernel(number: int) -> None:
    """Stand in for what Linux does, as on macOS; `number` is the signal that is not sent."""


def write(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - what the test reads


def main() -> int:
    if "--without-kernel" in sys.argv:
        setattr(processes, "make_parent_death_hook", has_no_kernel)  # noqa: B010 - mypy holds it to be final
    asked = iter([False, False, True])

    def drained(_settings: up.Settings) -> bool:
        answer = next(asked)
        write(f"drained {answer}")
        return answer

    def ready(stack: Stack) -> None:
        write(f"ready {stack.file}")

    hooks = up.Hooks(
        init=lambda settings: write(f"init {settings['STANDINGS_KAFKA']}"),
        ready=ready,
        drained=drained,
        after_restart=lambda name, _settings: write(f"after {name}"),
        say=lambda line: write(f"say {line}"),
    )
    return up.run(up.UpOptions(data=Path(sys.argv[1]), port=int(sys.argv[2])), hooks, describe)


if __name__ == "__main__":
    sys.exit(main())
