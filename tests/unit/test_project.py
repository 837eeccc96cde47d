"""What nobody would notice until somebody else installs the project."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))


def test_every_package_is_installed_and_tests_are_not() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    tops = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    exist = {
        ".".join(path.parent.relative_to(ROOT).parts) for top in tops for path in (ROOT / top).rglob("__init__.py")
    }
    assert exist - listed == set()
    assert "tests" not in listed


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_by_hash_and_names_no_address(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    requirements = [block for block in re.split(r"\n(?=[a-z0-9])", text) if not block.startswith("#")]
    assert requirements
    assert [block for block in requirements if "==" not in block or "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("name", ["run.txt", "embedded.txt"])
def test_what_is_run_is_what_was_tested(name: str) -> None:
    tested = pins("dev.txt")
    assert pins(name).items() <= tested.items()


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9.\[\]-]+)==(\S+)", text, flags=re.MULTILINE))
