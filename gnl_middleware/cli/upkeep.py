"""`gnl db`: the database itself; `gnl completion`: what a shell needs to complete commands and run ids."""

import click
from click.shell_completion import get_completion_class

from gnl_middleware.storage.address import Address
from gnl_middleware.viewer import plain

from .opening import address_of, check_there, journal_option, json_option, opened

_SHELLS = ("bash", "zsh", "fish")


@click.group("db")
def database() -> None:
    """Look after the database of a journal."""


@database.command("upgrade")
@journal_option
@json_option
def upgrade(url: str, as_json: bool) -> None:
    """Bring the tables up to date; what is recorded stays. Opening a journal does the same by itself.

    With --json: {"from": VERSION, "to": VERSION}.
    """
    before = _version(address_of(url))
    with opened(url) as journal:
        journal.runs(limit=1)
    after = _version(address_of(url))
    if as_json:
        click.echo(plain.json_text({"from": before, "to": after}))
    else:
        click.echo(
            f"Upgraded from schema version {before} to {after}."
            if before != after
            else f"Up to date: {after}."
        )


@database.command("version")
@journal_option
@json_option
def version(url: str, as_json: bool) -> None:
    """Tell the schema version of the journal, and change nothing.

    With --json: {"found": VERSION, "supported": VERSION}.
    """
    from gnl_middleware.storage.schema import SCHEMA_VERSION  # noqa: PLC0415 - it loads the database

    found = _version(address_of(url))
    if as_json:
        click.echo(plain.json_text({"found": found, "supported": SCHEMA_VERSION}))
    else:
        click.echo(f"Schema version {found}; this version of gnl-middleware reads up to {SCHEMA_VERSION}.")


def _version(address: Address) -> int | None:
    from gnl_middleware.storage.looking import version_at  # noqa: PLC0415 - it loads the database

    check_there(address)
    return version_at(address)


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands, options and run ids.

    bash, zsh: eval "$(gnl completion bash)" in ~/.bashrc (zsh in ~/.zshrc); fish: gnl completion fish | source
    """
    found = get_completion_class(shell)
    root = context.find_root()
    if found is None:
        raise click.ClickException(f"click cannot complete in {shell}.")
    click.echo(found(root.command, {}, "gnl", "_GNL_COMPLETE").source())
