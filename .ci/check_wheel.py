"""Checks of the built wheel, run by the interpreter of an environment that holds it: python -I check_wheel.py core|demo."""

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path

GNL = Path(sys.executable).with_name("gnl")
PACKAGES = {"gnl_middleware", "gnl_httpx", "gnl_langchain", "gnl_langgraph", "gnl_openai_agents"}
HEAVY = ("agents", "click", "langchain_core", "langgraph", "openai", "pydantic", "rich", "sqlalchemy")


def check_import_is_light() -> None:
    """`import gnl_middleware` loads neither SDKs nor drivers, and comes from the wheel."""
    import gnl_middleware  # noqa: PLC0415 (what the import loads is the point)

    if "site-packages" not in Path(gnl_middleware.__file__).parts:
        sys.exit(f"not the wheel's copy: {gnl_middleware.__file__}")
    loaded = [name for name in HEAVY if name in sys.modules]
    if loaded:
        sys.exit(f"import gnl_middleware loads {', '.join(loaded)}")


def check_plain_function_is_journalled() -> None:
    """A function marked `never` runs once; the second attempt reads its result back."""
    from gnl_middleware import Journal, journaled, never  # noqa: PLC0415 (only after the light import was checked)

    calls: list[str] = []

    @journaled(replay=never)
    def charge(order_id: str) -> str:
        calls.append(order_id)
        return f"receipt for {order_id}"

    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "runs.db") as journal:
        results: list[str] = []
        for _attempt in range(2):
            with journal.run("order:1"):
                results.append(charge("A-1"))
    if calls != ["A-1"] or results != ["receipt for A-1"] * 2:
        sys.exit(f"the journalled function ran {len(calls)} times and gave {results}")


def check_gnl_explains_its_extra() -> None:
    """`gnl` without extras exits 2 with the install command and no traceback."""
    finished = subprocess.run([GNL], capture_output=True, text=True, check=False)  # noqa: S603 (our own script)
    output = finished.stdout + finished.stderr
    if finished.returncode != 2 or "gnl-middleware[cli]" not in output or "Traceback" in output:  # noqa: PLR2004
        sys.exit(f"gnl without extras exited {finished.returncode} and said:\n{output}")


def check_adapter_explains_its_extra() -> None:
    """`import gnl_openai_agents` without the Agents SDK says what to install."""
    try:
        import gnl_openai_agents  # noqa: F401, PLC0415 (the import is the point)
    except ImportError as error:
        if "gnl-middleware[openai-agents]" not in str(error):
            sys.exit(f"gnl_openai_agents without the SDK said: {error}")
    else:
        sys.exit("gnl_openai_agents was imported without the SDK")


def check_wheel_contents() -> None:
    """The wheel ships the packages with their type markers, pages and the licence, and nothing else at its top."""
    files = importlib.metadata.files("gnl-middleware") or []
    shipped = {path.as_posix() for path in files}
    missing = {f"{package}/py.typed" for package in PACKAGES} - shipped
    missing |= {
        f"gnl_middleware/{name}" for name in ("cli/pages/RunBusyError.md", "viewer/templates/run.html")
    } - shipped
    if missing or not any(path.endswith("licenses/LICENSE") for path in shipped):
        sys.exit(f"the wheel lacks the licence or {sorted(missing)}")
    tops = {
        path.parts[0] for path in files if path.parts[0] != ".." and not path.parts[0].endswith(".dist-info")
    }
    if tops != PACKAGES:
        sys.exit(f"the wheel puts {sorted(tops)} into site-packages")


def check_demo_holds() -> None:
    """Every crash point of the demo: nothing asked twice, one ticket, one email, the clean run's reply."""
    finished = subprocess.run([GNL, "demo", "--json"], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    report = json.loads(finished.stdout)
    expected = {"model_calls_repeated": 0, "tickets": 1, "emails": 1, "same_reply": True}
    broken = [
        point for point in report["points"] if any(point[name] != value for name, value in expected.items())
    ]
    unresolved = [point for point in report["points"] if point["blocked"] and not point["resolved_by"]]
    if not report["points"] or broken or unresolved:
        sys.exit(f"gnl demo does not hold: {json.dumps(broken + unresolved or report, indent=1)}")
    print(f"gnl demo holds at {len(report['points'])} crash points")


CHECKS = {
    "core": (
        check_import_is_light,
        check_wheel_contents,
        check_plain_function_is_journalled,
        check_gnl_explains_its_extra,
        check_adapter_explains_its_extra,
    ),
    "demo": (check_demo_holds,),
}

if __name__ == "__main__":
    for check in CHECKS[sys.argv[1]]:
        check()
        print(f"ok: {check.__doc__}")
