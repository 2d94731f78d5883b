"""Celery with Redis. A message is acknowledged after the job, so that one whose worker was killed is delivered again.

celery --app celery_worker worker                     start a worker
celery --app celery_worker call case --args '["42"]'  put a job into the queue
"""

import os
import sys
import time

from celery import Celery

from gnl_middleware import RunBusyError, SideEffectRetryBlockedError

app = Celery("support", broker=os.environ.get("BROKER", "redis://localhost"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    # Redis delivers again what was not acknowledged for so many seconds, also from a worker that still lives. Whatever it
    # is, and however long the agent takes: the journal lets one of the two work.
    broker_transport_options={"visibility_timeout": int(os.environ.get("VISIBILITY", "60"))},
    broker_connection_retry_on_startup=True,
)


@app.task(name="case", bind=True, max_retries=None)
def case(self, name: str) -> str:
    from support import handle  # noqa: PLC0415 - whoever only adds a job loads no agent

    try:
        return handle(name)
    except RunBusyError as busy:  # come back when the other worker's lease has ended, if it is not renewed
        raise self.retry(exc=busy, countdown=max(1.0, busy.lease_ends_at - time.time())) from busy
    except SideEffectRetryBlockedError as blocked:  # delivering it again would only ask the same person again
        print(blocked, file=sys.stderr)
        return "waits for a person"
