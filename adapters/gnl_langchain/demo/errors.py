"""What ends the demo before it can say anything."""

import click


class DemoError(click.ClickException):
    """The demo itself went wrong; exit code 2, since 1 says that a crash point did not hold."""

    exit_code = 2
