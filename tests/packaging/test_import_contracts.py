"""The import contracts in pyproject.toml guard the layers: each kind of breach, planted in a copy, is reported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copied_packages(tmp_path):
    """The packages and their contracts, free to be broken."""
    for room in ("gnl_middleware", "adapters"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a folder whose packages come before the installed ones."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "adapters")])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_contracts_are_kept(copied_packages):
    """The packages as they are keep every contract."""
    finished = lint_imports(copied_packages)

    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("module", "breach", "broken"),
    [
        ("gnl_middleware/identity.py", "import gnl_middleware.policy", "Floors of the core"),
        ("gnl_middleware/unplanned.py", "", "Floors of the core"),
        ("gnl_middleware/storage/schema.py", "import gnl_middleware.storage.writer", "Storage"),
        ("gnl_middleware/journal.py", "import langchain_core", "The core knows neither"),
        ("gnl_middleware/decision.py", "import sqlalchemy", "SQLAlchemy lives in storage only"),
        ("adapters/gnl_langchain/__init__.py", "import gnl_middleware.storage", "Adapters speak"),
        ("adapters/gnl_openai_agents/__init__.py", "import gnl_middleware.session", "Adapters speak"),
        ("adapters/gnl_openai_agents/values.py", "import langchain_core", "The adapter of the Agents SDK"),
    ],
)
def test_breach_is_reported(copied_packages, module, breach, broken):
    """An import that climbs a floor, or reaches past a public surface, breaks the contract that forbids it."""
    with (copied_packages / module).open("a", encoding="utf-8") as source:
        source.write(f"\n{breach}\n")

    finished = lint_imports(copied_packages)

    assert finished.returncode != 0
    broken_contracts = [line for line in finished.stdout.splitlines() if line.endswith("BROKEN")]
    assert len(broken_contracts) == 1, finished.stdout + finished.stderr
    assert broken_contracts[0].startswith(broken)
