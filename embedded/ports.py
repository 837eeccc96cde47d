"""Ports on the loopback interface: which are free, and what to say when one is taken."""

from __future__ import annotations

import socket

from embedded.errors import StackError

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port of 127.0.0.1 now.

    Connects first: on macOS a bind to 127.0.0.1 succeeds beside a listener on 0.0.0.0.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.5)
        if probe.connect_ex((LOOPBACK, port)) == 0:
            return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def find_free_port() -> int:
    """Return a port that was free a moment ago; whoever binds it must expect to lose a race."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def choose_port(default: int, wanted: int | None, name: str, option: str) -> int:
    """Return the wanted port, or the default, or any free one when only the default is taken.

    Errors: StackError when a port that was asked for is taken.
    """
    if wanted is not None:
        require_free(wanted, name, option)
        return wanted
    return default if is_free(default) else find_free_port()


def require_free(port: int, name: str, option: str) -> None:
    """Raise StackError, which names the port and the option to choose another, if it is taken."""
    if not is_free(port):
        raise StackError(
            f"port {port} on {LOOPBACK}, for {name}, is taken: stop what listens there or choose another with {option}"
        )
