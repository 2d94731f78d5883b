"""The demo's model traffic: recorded HTTP answers, each given once and in order, with the network shut.

Every body is first written to a log, so that a report can compare what was sent after a restart with what was sent in the
clean run, byte for byte.
"""

import json
from pathlib import Path

from gnl_middleware.cassettes import CassetteUse, Request, use_cassette

from .desk import append_line

RECORDING = Path(__file__).with_name("support.yaml")
"""The recorded traffic; its first lines say how it was made."""


def recorded_traffic(log: Path, recording: Path = RECORDING) -> CassetteUse:
    """Answer the HTTP requests of this process from a recording, and log their bodies, one JSON string a line.

    What the recording does not hold is refused with a `CassetteMissError`, and any other connection with a
    `NetworkRefusedError`.
    """

    def note(request: Request) -> None:
        append_line(log, json.dumps(request.body.decode()))

    return use_cassette(recording, record=False, ordered=True, on_request=note)
