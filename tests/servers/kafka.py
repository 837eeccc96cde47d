"""A real Apache Kafka (KRaft, one broker) on 127.0.0.1 for tests, from Maven artifacts and without Docker."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from tests.servers.missing import Missing

JAVA_MIN: Final = 17
POM: Final = Path(__file__).with_name("pom.xml")
STARTED: Final = "Kafka Server started"

# One broker has no replicas to wait for; and a test has no time to wait for more members before the first
# rebalance, nor for the session of a broker that was killed to run out.
SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENT",
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "2000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Kafka:
    """One broker, whose data outlives its process: what was stopped or killed can be started again.

    `directory` gets the settings, the data and the log (``broker.log``). `settings` are added to the
    broker's own, the last word being theirs. Raises `Missing` without Java or the jars.
    """

    def __init__(self, directory: Path, port: int, controller_port: int, settings: Mapping[str, str]) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self.log = directory / "broker.log"
        self._java = find_java()
        self._jars = fetch_jars()
        self._properties = directory / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        lines = SETTINGS | {
            "listeners": f"CLIENT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"CLIENT://{self.bootstrap}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
            "log.dirs": str(directory / "data"),
            **settings,
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()), encoding="utf-8")
        if not (directory / "data" / "meta.properties").exists():
            self._format()

    @property
    def pid(self) -> int:
        """The process id of the running broker; `RuntimeError` if there is none."""
        if self._process is None:
            raise RuntimeError("the broker isn't running")
        return self._process.pid

    def start(self, timeout_s: float = 60) -> None:
        """Start the broker and return when it serves clients; `RuntimeError` with its last lines if it ends."""
        with self.log.open("wb") as log:
            self._process = self._popen(["-Xms64m", "-Xmx512m", "kafka.Kafka", str(self._properties)], log)
        give_up_at = time.monotonic() + timeout_s
        while STARTED not in self.log.read_text(encoding="utf-8", errors="replace"):
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                self.kill()
                raise RuntimeError(f"Kafka did not start; its last lines:\n{last_lines(self.log)}")
            time.sleep(0.05)

    def stop(self, timeout_s: float = 15) -> None:
        """Ask the broker to stop and wait for it; kill it after `timeout_s`. Does nothing if it isn't running."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End the broker as a crash does (SIGKILL). Does nothing if it isn't running."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._process = None

    def _format(self) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_log = self.log.with_name("format.log")
        # As one argument: an id may begin with a dash.
        tool = ["kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster_id}"]
        with format_log.open("wb") as log:
            code = self._popen([*tool, "--config", str(self._properties)], log).wait(60)
        if code != 0:
            raise RuntimeError(f"Kafka's storage could not be formatted:\n{last_lines(format_log)}")

    def _popen(self, arguments: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.apache.logging.log4j.level=INFO"]
        return subprocess.Popen(
            [self._java, "-cp", f"{self._jars}/*", *quick, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


@contextmanager
def running_kafka(
    directory: Path, port: int | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Kafka]:
    """Run a broker while the block runs; `port` defaults to a free one, the controller always takes one.

    Raises `Missing` where Java or the jars are not to be had. Takes some 5 s, and a download of 43 MB the first time.
    """
    free, controller_port = free_ports(2)
    kafka = Kafka(directory, port or free, controller_port, settings or {})
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.stop()


def free_ports(count: int) -> list[int]:
    """Return so many different ports of 127.0.0.1 on which nothing listens."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def find_java() -> str:
    """Return the path of a Java that can run the broker, or raise `Missing`."""
    java = shutil.which("java")
    needed = f"Java {JAVA_MIN} or newer is needed for a real Kafka (Debian: apt install default-jre-headless)"
    if java is None:
        raise Missing(needed)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < JAVA_MIN:
        raise Missing(needed)
    return java


def fetch_jars() -> Path:
    """Return the folder of the broker's jars, fetched by Maven if ``pom.xml`` is new, or raise `Missing`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "standings-test" / "kafka-jars"
    jars = cache / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise Missing("Maven is needed to fetch a real Kafka (Debian: apt install maven)")
    cache.mkdir(parents=True, exist_ok=True)
    # Complete or absent: another run may be fetching the same.
    with tempfile.TemporaryDirectory(dir=cache) as part:
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}/jars"]
        run = subprocess.run([maven, "-q", "-B", "-f", str(POM), *goal], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Missing(f"Maven could not fetch a real Kafka:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        if not jars.is_dir():
            Path(part, "jars").rename(jars)
    return jars


def last_lines(log: Path, count: int = 20) -> str:
    """Return the end of a log for an error message."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])
