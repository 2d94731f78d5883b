"""`gnl demo`: a support agent, killed at every point where a crash can leave something behind, and restarted.

Found through the entry point `gnl_middleware.demo`. Importing this package loads click alone; what the demo needs
beyond that is imported when it runs.
"""

import importlib.util

import click

from .errors import DemoError

_NEEDED = {"langchain_openai": "langchain-openai", "rich": "rich", "vcr": "vcrpy"}


def _relabelled(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """The values of `--relabel`, as labels by tool name."""
    tools, labels = ("lookup_customer", "create_ticket", "send_email"), ("safe", "keyed", "never")
    relabel = dict[str, str]()
    for item in given:
        tool, _, label = item.partition("=")
        if tool not in tools or label not in labels:
            raise click.BadParameter(f"{item!r} is not TOOL=LABEL, with one of {tools} and one of {labels}")
        relabel[tool] = label
    return relabel


@click.command()
@click.option(
    "--relabel",
    multiple=True,
    metavar="TOOL=LABEL",
    callback=_relabelled,
    help="Give a tool another replay label: send_email=safe lets the duplicate happen.",
)
@click.option("--journal", metavar="URL", help="Write to this journal, a path or URL, and leave it there.")
@click.option("--keep", is_flag=True, help="Leave the journal, the help desks and the mailboxes to look at.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
def command(relabel: dict[str, str], journal: str | None, keep: bool, as_json: bool) -> None:
    """Kill an agent at every crash point and see what a restart makes of it.

    A support agent looks a customer up, opens a ticket and sends an email: with the real OpenAI client on recorded
    traffic, without a key and without a network. Its worker process dies at each point in turn.

    Exits with 0 when every point held, with 1 when something was asked or done twice, and with 2 when the demo could
    not be played.
    """
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        packages = " and ".join(missing)
        raise DemoError(f"the demo needs {packages}: pip install 'gnl-middleware[demo]'")
    from .program import run_demo  # noqa: PLC0415 - `gnl --help` must not wait for langchain

    held = run_demo(relabel=relabel, journal=journal, keep=keep, as_json=as_json)
    raise SystemExit(0 if held else 1)
