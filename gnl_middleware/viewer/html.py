"""Pages as HTML: one template for the file that `gnl export` writes and for what `gnl serve` keeps alive.

Whatever a model, a tool or a caller wrote is escaped by the template engine, and the policy of every page lets nothing
run or load but what it came with.
"""

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined

from gnl_middleware.model import RunRecord

from .page import Page, text
from .plain import visible
from .words import duration, moment, size, spared

_GLYPHS = {"ran": "●", "failed": "✕", "blocked": "◆", "open": "○"}


@dataclass(frozen=True, slots=True)
class Live:
    """What makes a page live.

    Attributes:
        csrf: What a form must carry to be believed.
        by: Who decided last, to save typing.
        message: What to tell the person first.
    """

    csrf: str
    by: str = ""
    message: str = ""


def export(page: Page) -> str:
    """The page of a run as one file that needs nothing else.

    Example:
        >>> Path("run.html").write_text(export(page), encoding="utf-8")     # doctest: +SKIP
    """
    policy = f"default-src 'none'; style-src {_hash('style.css')}; script-src {_hash('page.js')}; base-uri 'none'; form-action 'none'"
    return (
        _engine()
        .get_template("run.html")
        .render(page=page, live=None, policy=policy, title=page.record.run_id)
    )


def live_run(page: Page, live: Live) -> str:
    """The page of a run as the server gives it."""
    return (
        _engine().get_template("run.html").render(page=page, live=live, policy="", title=page.record.run_id)
    )


def live_index(
    records: Sequence[RunRecord], waiting: Sequence[Page], live: Live, asked: Mapping[str, str]
) -> str:
    """The list of runs, and the queue of calls that wait for a person."""
    template = _engine().get_template("index.html")
    return template.render(records=records, waiting=waiting, live=live, asked=asked, policy="", title="Runs")


def asset(name: str) -> str:
    """A file that pages are made of: ``style.css`` or ``page.js``."""
    return (files(__package__ or "") / "templates" / name).read_text(encoding="utf-8")


def _hash(name: str) -> str:
    digest = hashlib.sha256(asset(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@functools.cache
def _engine() -> Environment:
    engine = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known: dict[str, Any] = dict(engine.globals)
    known |= {"asset": asset, "glyphs": _GLYPHS, "text": text, "visible": visible}
    known |= {"duration": duration, "moment": moment, "size": size, "spared": spared}
    engine.globals = known
    return engine
