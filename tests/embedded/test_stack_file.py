"""stack.json, the registry, the data folder."""

from __future__ import annotations

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.errors import StackError
from embedded.files import DataFolder, is_locked, write_private
from embedded.stack import Stack, find_stack


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def describe(data: Path, port: int = 8099) -> Stack:
    return Stack(
        api=f"http://127.0.0.1:{port}",
        submit_key="do-not-tell",
        redis="redis://127.0.0.1:6390/0",
        kafka="127.0.0.1:9092",
        dynamodb="http://127.0.0.1:4566",
        pids={"redis": 1},
        data=str(data),
        prefix="lb",
    )


def test_a_stack_is_found_by_folder_and_url_while_its_folder_is_held(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    stack = describe(folder.path)
    stack.write()
    assert find_stack(tmp_path / "data", None) == stack
    assert find_stack(None, "http://127.0.0.1:8099") == stack
    assert find_stack(None, "http://localhost:8099/v1/boards") == stack
    assert find_stack(tmp_path / "other", "http://[::1]:8099") == stack
    for url in ("http://127.0.0.1:8098", "http://example.com:8099", "https://127.0.0.1:8099", "nonsense", "http://[:1"):
        assert find_stack(None, url) is None
    assert find_stack(None, None) is None
    folder.close()
    assert find_stack(tmp_path / "data", "http://127.0.0.1:8099") is None


def test_an_entry_that_leads_to_another_port_or_nowhere_finds_nothing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    stack = describe(folder.path)
    stack.write()
    replace(stack, api="http://127.0.0.1:8100").write()  # the same folder, started again on another port
    assert find_stack(None, "http://127.0.0.1:8099") is None
    stack.file.unlink()
    assert find_stack(None, "http://127.0.0.1:8100") is None
    folder.close()


def test_removing_a_stack_leaves_the_entry_of_a_later_one(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path / "first"), DataFolder(tmp_path / "second")
    describe(first.path).write()
    describe(second.path).write()
    describe(first.path).remove()
    assert find_stack(None, "http://127.0.0.1:8099") == describe(second.path)
    first.close()
    second.close()


def test_secrets_are_for_the_owner_only_and_not_in_a_repr(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    stack = describe(folder.path)
    stack.write()
    key = folder.read_submit_key()
    assert key.startswith("sk_")  # never an option on a command line
    folder.close()
    assert len(key) >= 40
    entry = tmp_path / "state" / "standings" / "stacks" / "8099.json"
    for path in (stack.file, folder.path / "submit-key", entry):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "do-not-tell" not in entry.read_text()
    assert "do-not-tell" not in repr(stack)


def test_a_reader_never_sees_a_part_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stack.json"
    write_private(path, json.dumps(["x" * 10]))
    done = threading.Event()

    def rewrite() -> None:
        for number in range(200):
            write_private(path, json.dumps(["x" * (number * 500)]))
        done.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    reads = 0
    while not done.is_set() or not reads:
        assert set(json.loads(path.read_text())[0]) <= {"x"}
        reads += 1
    writer.join()
    assert [each.name for each in tmp_path.iterdir()] == ["stack.json"]


def test_a_folder_has_one_holder_and_is_free_after_it(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    assert is_locked(tmp_path)
    with pytest.raises(StackError, match=r"in use by another stack \(pid \d+\): .* with --data"):
        DataFolder(tmp_path)
    first.close()
    assert not is_locked(tmp_path)
    DataFolder(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StackError, match="choose another with --data"):
        DataFolder(tmp_path / "file" / "data")


def test_clearing_removes_the_state_and_nothing_else(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    key = folder.read_submit_key()
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "file").write_text("")
    (tmp_path / "stack.json").write_text("")
    (tmp_path / "mine.txt").write_text("")
    folder.clear()
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "submit-key", "mine.txt"}
    assert folder.read_submit_key() == key
    folder.close()
