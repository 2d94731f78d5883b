"""Functions of the user's that are named on the command line, and modules from the current folder."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from gnl_middleware.viewer.plain import visible


def find_modules_here() -> None:
    """Let modules be found from the current folder on, as a script there would find them."""
    sys.path.insert(0, str(Path.cwd()))


def loaded(named: str, default_module: str, option: str) -> Callable[..., Any]:
    """The function that the user named: ``NAME`` in the default module, or ``MODULE:NAME``.

    Raises:
        click.BadParameter: It cannot be loaded, or is no function.
    """
    module, _, name = named.rpartition(":")
    module = module or default_module
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        told = f"{visible(named)} cannot be loaded: {type(error).__name__}: {visible(str(error))}"
        raise click.BadParameter(told, param_hint=option) from error
    if not callable(found):
        raise click.BadParameter(f"{visible(named)} is no function", param_hint=option)
    return found
