"""Processes that hear Ctrl-C."""

import signal


def hear_interrupts():
    """As in a shell: whoever runs the tests in the background lets their processes ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
