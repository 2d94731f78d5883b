"""What `import gnl_middleware` costs: SDKs, drivers and the CLI's libraries load when they are used, not before."""

import json
import subprocess
import sys

import pytest

HEAVY_PACKAGES = {
    "agents",
    "click",
    "cryptography",
    "langchain_core",
    "langgraph",
    "openai",
    "pydantic",
    "rich",
    "sqlalchemy",
}


def packages_loaded_by(statement: str) -> set[str]:
    """The top-level packages in a fresh interpreter after one statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    finished = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    return set(json.loads(finished.stdout))


def test_import_loads_no_heavy_package():
    """Importing the package loads neither pydantic, nor SQLAlchemy, nor an SDK, nor the CLI's libraries."""
    loaded = packages_loaded_by("import gnl_middleware")

    assert "gnl_middleware" in loaded
    assert loaded & HEAVY_PACKAGES == set()


@pytest.mark.parametrize("package", ["sqlalchemy", "pydantic"])
def test_heavy_package_would_be_noticed(package):
    """The check above sees a heavy package that is loaded."""
    loaded = packages_loaded_by(f"import gnl_middleware, {package}")

    assert package in loaded & HEAVY_PACKAGES
