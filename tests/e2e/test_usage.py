"""What the command line says where it can't do what was asked: one line that tells what to do, and an exit code."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

import cli
from embedded.ports import find_free_port
from tests.e2e.stack import RunningStack, bare_environment, run_command


@pytest.mark.parametrize(
    "mistake",
    [
        "nonsense", "top", "top main:all -n 0", "top main:all --nonsense", "rebuild", "rebuild --all --lane 1",
        "rebuild --watch --all", "audit", "audit --all --sample 0", "init --lanes 0", "up --port 65536",
    ],
)  # fmt: skip
def test_a_mistake_on_the_command_line_exits_2(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.app(mistake.split(), prog_name="standings")
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("Usage: standings")


@pytest.mark.parametrize(
    ("command", "setting", "told"),
    [
        ("top main:all", "STANDINGS_DATA={folder}", "no stack is running in {folder}: start it with `standings up"),
        ("top main:all", "STANDINGS_URL=http://127.0.0.1:{port}", "no service answers at http://127.0.0.1:{port}"),
        ("status", "STANDINGS_URL=http://127.0.0.1:{port}", "this command talks to the stores themselves"),
        ("updater", "STANDINGS_REDIS_TIMEOUT_S=soon", "STANDINGS_REDIS_TIMEOUT_S"),
    ],
)
def test_a_command_that_finds_no_stack_says_so_in_one_line(
    tmp_path: Path, command: str, setting: str, told: str
) -> None:
    known = {"folder": tmp_path, "port": find_free_port()}
    name, _, value = setting.format(**known).partition("=")
    environment = {one: it for one, it in bare_environment(tmp_path).items() if not one.startswith("AWS_")}
    began_s = time.monotonic()
    done = run_command(*command.split(), environment=environment | {name: value})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("standings: ")
    assert told.format(**known) in done.stderr
    assert time.monotonic() - began_s < 20


def test_the_exit_code_of_a_mistake_is_that_of_the_process(tmp_path: Path) -> None:
    done = run_command("rebuild", environment=bare_environment(tmp_path))
    assert (done.returncode, done.stdout, "Usage: " in done.stderr) == (2, "", True)


def test_up_says_which_port_is_taken_and_which_option_chooses_another(tmp_path: Path) -> None:
    environment = bare_environment(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for option in ("--port", "--redis-port"):
            ports = {"--port": str(find_free_port()), option: str(port)}
            arguments = [part for pair in ports.items() for part in pair]
            done = run_command("up", "--data", str(tmp_path / "data"), *arguments, environment=environment)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
            assert f"port {port} on 127.0.0.1" in done.stderr
            assert option in done.stderr
    assert not (tmp_path / "data" / "stack.json").exists()


def test_up_leaves_a_folder_alone_in_which_another_stack_runs(stack: RunningStack, tmp_path: Path) -> None:
    before = stack.file
    done = run_command(
        "up", "--data", str(stack.data), "--port", str(find_free_port()), "--fresh",
        environment=bare_environment(tmp_path),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"{stack.data} is in use by another stack" in done.stderr
    assert stack.file == before
    assert stack.get("/readyz").status_code == 200


def test_up_knows_its_samples(tmp_path: Path) -> None:
    environment = bare_environment(tmp_path)
    done = run_command("up", "--data", str(tmp_path / "data"), "--sample", "chess", environment=environment)
    assert (done.returncode, done.stderr) == (1, "standings: no sample named 'chess'; there is: football\n")
    assert not (tmp_path / "data").exists()
