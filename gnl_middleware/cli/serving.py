"""`gnl serve`: the pages of a journal, live, for the person on this machine."""

import contextlib
import socket
import webbrowser

import click

from .opening import NotInstalledError, journal_option, opened, place_of

_HOST = "127.0.0.1"
_PORT = 8321


@click.command("serve", short_help="Show runs live in a browser, and decide there.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 takes any free one."
)
@click.option("--open", "browse", is_flag=True, help="Open the browser, too.")
@journal_option
@click.pass_context
def command(context: click.Context, port: int, browse: bool, url: str) -> None:
    """Show the runs of the journal and the calls that wait, live, and take decisions.

    Only this machine is answered (127.0.0.1), and only who has the token in the printed address. For others put a proxy with
    TLS and a login in front. Ends with Ctrl-C.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from gnl_middleware.viewer.app import Watch, application, new_token  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise NotInstalledError("The server needs more: pip install 'gnl-middleware[serve]'") from error
    place = place_of(context)
    with opened(url) as journal, socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, port))
            listening.listen()  # who is faster than the server waits
        except OSError as error:
            raise click.ClickException(
                f"Port {port} cannot be used ({error.strerror}): choose one with --port."
            ) from error
        token = new_token()
        address = f"http://{_HOST}:{listening.getsockname()[1]}/?token={token}"
        click.echo(f"Open {address}\nThe token is new each time; Ctrl-C ends the server.")
        if browse:
            webbrowser.open(address)
        app = application(Watch(journal, token, place))
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        with contextlib.suppress(KeyboardInterrupt):  # the way out
            uvicorn.Server(config).run(sockets=[listening])
