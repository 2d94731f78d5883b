"""`gnl` as a program: what it needs, what it loads, and how it ends."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gnl_middleware.cli.app import app

ROOT = Path(__file__).parents[2]


def bare_environment(folder, *packages):
    """An environment for `python -S`, in which nothing is installed but this package and those named."""
    for package in packages:
        (found,) = importlib.util.find_spec(package).submodule_search_locations
        (folder / package).symlink_to(found)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


@pytest.mark.parametrize("installed", [["wrapt"], ["wrapt", "click"]], ids=["neither", "click alone"])
def test_without_its_packages_the_program_says_what_to_install(tmp_path, installed):
    """Where click or rich is not installed, one line names the extra, the exit code is 2, and there is no traceback."""
    environment = bare_environment(tmp_path, *installed)

    ended = subprocess.run(
        [sys.executable, "-S", "-m", "gnl_middleware.cli", "runs"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == "The command line needs click and rich: pip install 'gnl-middleware[cli]'\n"


def test_help_loads_click_alone():
    """`gnl --help` waits neither for rich, nor for the journal, nor for a framework, nor for any command."""
    program = """
import json, sys
from gnl_middleware.cli import main
try:
    main(["--help"])
finally:
    heavy = {"click", "rich", "sqlalchemy", "langchain", "langchain_core", "openai", "pydantic"}
    own = {name for name in sys.modules if name.startswith("gnl_middleware")}
    print(json.dumps(sorted(heavy & set(sys.modules) | own)), file=sys.stderr)
"""

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert json.loads(ended.stderr) == [
        "click",
        "gnl_middleware",
        "gnl_middleware.cli",
        "gnl_middleware.cli.app",
    ]
    assert {"demo", "resolve", "runs", "show"} <= set(ended.stdout.split())
    assert "Exit codes: 0" in ended.stdout


def test_help_tells_of_each_command_what_the_command_tells_of_itself():
    """The line of a command in `gnl --help` is the first sentence of its own help."""
    context = click.Context(app, info_name="gnl")
    commands = [app.get_command(context, name) for name in app.list_commands(context)]
    formatter = click.HelpFormatter(width=400)

    app.format_commands(context, formatter)

    lines = [line.split(maxsplit=1) for line in formatter.getvalue().splitlines()[1:]]
    assert lines == [[command.name, command.get_short_help_str(400)] for command in commands]


def test_a_command_that_does_not_exist_is_a_usage_error(gnl):
    """A mistyped command ends with exit code 2."""
    result = gnl("rums", exit_code=2)

    assert "No such command 'rums'" in result.stderr


@pytest.fixture
def adapter_with_demo(tmp_path):
    """An installed distribution that offers a demo, before all others in the alphabet."""

    def install(source):
        (tmp_path / "z_demo.py").write_text(source, encoding="utf-8")
        metadata = tmp_path / "z_demo-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: z-demo\nVersion: 1\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(
            "[gnl_middleware.demo]\na = z_demo:command\n", encoding="utf-8"
        )
        return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}

    return install


def test_the_demo_of_an_adapter_gets_its_own_options(gnl_process, adapter_with_demo):
    """`gnl demo` runs what an installed adapter offers, hands it every option untouched, and ends as it ends."""
    environment = adapter_with_demo(
        """
import click
@click.command()
@click.option("--journal")
@click.option("--colour", multiple=True)
@click.argument("rest", nargs=-1)
def command(journal, colour, rest):
    click.echo(f"{journal} {colour} {rest}")
    raise SystemExit(5)
"""
    )

    ended = gnl_process(
        "demo", "--journal", "a.db", "--colour=red", "x", "--colour", "blue", environment=environment
    )
    helped = gnl_process("demo", "--help", environment=environment)

    assert (ended.returncode, ended.stdout) == (5, "a.db ('red', 'blue') ('x',)\n")
    assert "Usage: gnl demo [OPTIONS]" in helped.stdout
    assert "--colour" in helped.stdout


def test_a_demo_whose_packages_are_missing_says_what_to_install(gnl_process, adapter_with_demo):
    """Where the demo's packages are not installed, one line names the extra and the exit code is 2."""
    environment = adapter_with_demo("import a_framework_that_is_not_installed\n")

    ended = gnl_process("demo", environment=environment)

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "a_framework_that_is_not_installed" in ended.stderr
    assert "pip install 'gnl-middleware[demo]'" in ended.stderr


def test_without_any_demo_the_program_says_what_to_install(tmp_path):
    """Where no adapter is installed, one line names the extra and the exit code is 2."""
    environment = bare_environment(tmp_path, "wrapt", "click", "rich", "orjson", "tenacity")

    ended = subprocess.run(
        [sys.executable, "-S", "-m", "gnl_middleware.cli", "demo"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert (
        ended.stderr
        == "Error: The demo cannot run (it is not installed): pip install 'gnl-middleware[demo]'\n"
    )


def test_an_error_of_a_demo_is_a_paragraph(gnl_process, adapter_with_demo):
    """An error of the library that a demo lets out is its text and exit code 1, not a traceback."""
    environment = adapter_with_demo(
        """
import click
from gnl_middleware import NoActiveRunError
@click.command()
def command():
    raise NoActiveRunError(name="look_up")
"""
    )

    ended = gnl_process("demo", environment=environment)

    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: look_up is journalled, but no run is open")
    assert "Traceback" not in ended.stderr


def test_a_terminal_that_lacks_a_character_shows_its_code(gnl_process, one_run):
    """Where the output's encoding has no such letter, its code stands for it, and the rest is printed."""
    one_run(value="crème")

    ended = gnl_process("show", "order-1", environment={"PYTHONIOENCODING": "ascii"})

    assert ended.returncode == 0, ended.stderr
    assert '"cr\\xe8me"' in ended.stdout


def test_a_reader_that_leaves_early_causes_no_traceback(one_run, journal_path):
    """`gnl show | head -0` ends quietly."""
    one_run()
    reader, writer = os.pipe()
    os.close(reader)

    ended = subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", "show", "order-1", "--journal", journal_path],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)

    assert ended.stderr == ""
