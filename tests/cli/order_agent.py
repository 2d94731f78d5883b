"""The program of an order, run as a process of its own: it looks a customer up, mails twice and counts the mails."""

import sys
from pathlib import Path

from gnl_middleware import Journal, RecordedError, journaled, never, safe
from gnl_middleware.testing import install_crash_points

journal_path, mailbox = sys.argv[1], Path(sys.argv[2])


@journaled(replay=safe)
def look_up(customer: str) -> dict[str, str]:
    return {"name": customer}


@journaled(replay=never)
def send_email(to: str) -> str:
    with mailbox.open("a", encoding="utf-8") as mails:
        mails.write(f"{to}\n")
    return f"mailed {to}"


install_crash_points()
with Journal(journal_path) as journal, journal.run("order-1") as run:
    look_up("ann")
    try:
        answer = send_email("ann")
    except RecordedError as error:
        answer = f"told: {error}"
    run.value("signed", lambda: "by the agent")
    sys.stdout.write(f"{answer}\n")
