"""Recorded HTTP traffic for tests: no key, no network, and no request that nobody has seen. Needs the extra ``cassettes``.

    with use_cassette("cassettes/refund.yaml"):
        agent.invoke(question)

``GNL_RECORD=1 pytest`` records; without it everything is played, and whatever is not in the recording is refused.
"""

from importlib.util import find_spec

if find_spec("vcr") is None:
    raise ImportError("Cassettes need vcrpy: pip install 'gnl-middleware[cassettes]'")

from .errors import (
    CassetteError,
    CassetteExportError,
    CassetteMissError,
    CassetteSecretError,
    CassetteUnreadableError,
    MissReason,
    NetworkRefusedError,
)
from .exchange import export_run, import_cassette
from .interaction import Interaction, Request, Response
from .use import RECORD_VARIABLE, ActiveCassette, CassetteUse, use_cassette

__all__ = [
    "RECORD_VARIABLE",
    "ActiveCassette",
    "CassetteError",
    "CassetteExportError",
    "CassetteMissError",
    "CassetteSecretError",
    "CassetteUnreadableError",
    "CassetteUse",
    "Interaction",
    "MissReason",
    "NetworkRefusedError",
    "Request",
    "Response",
    "export_run",
    "import_cassette",
    "use_cassette",
]
