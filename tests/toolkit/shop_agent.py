"""An agent as `gnl crash-matrix` is pointed at it: functions of a module, told by the environment what to do."""

import os
import sys
from pathlib import Path

from gnl_middleware import Done, NotDone, keyed, never, safe
from gnl_middleware.testing import EffectLog
from tests.toolkit.orders import order

effects = EffectLog(os.environ["SHOP_LOG"])
LABEL = {"safe": safe, "keyed": keyed, "never": never}[os.environ.get("SHOP_LABEL", "never")]
SHOP = order(effects, LABEL, says_key=LABEL is never)


def build():
    sys.stdout.write("the agent prints this\n")
    return SHOP[0]()


def run(agent, run_id, journal):
    return SHOP[1](agent, run_id, journal)


def run_badly(agent, run_id, journal):
    raise OSError("the shop is closed")


def count():
    log = Path(os.environ["SHOP_LOG"])
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def look(call):
    return Done("mailed ann") if effects.has(call.tool, key=call.idempotency_key) else NotDone()


no_function = "text"
