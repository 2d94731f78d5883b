"""Procrastinate: queue and journal in one PostgreSQL.

python procrastinate_worker.py setup      create the queue's tables
python procrastinate_worker.py add 42     put a job into the queue
python procrastinate_worker.py work       work until the queue is empty
"""

import asyncio
import os
import sys

from procrastinate import App, PsycopgConnector, RetryStrategy

from gnl_middleware import RunBusyError, SideEffectRetryBlockedError

SILENCE = float(
    os.environ.get("SILENCE", "30")
)  # seconds after which a worker without a heartbeat is taken for dead

app = App(connector=PsycopgConnector(conninfo=os.environ["JOURNAL"]))
later = RetryStrategy(wait=10, retry_exceptions=[RunBusyError])


@app.task(name="case", retry=later, pass_context=False)
def case(name: str) -> str:
    from support import handle  # noqa: PLC0415 - whoever only adds a job loads no agent

    try:
        return handle(name)
    except SideEffectRetryBlockedError as blocked:  # to try it again would only ask the same person again
        print(blocked, file=sys.stderr)
        return "waits for a person"


async def give_out_again() -> None:
    """The jobs of workers that died; where workers never stop, a periodic task does this."""
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=SILENCE):
        await app.job_manager.retry_job(job)


async def main(word: str, *names: str) -> None:
    async with app.open_async():
        if word == "setup":
            await app.schema_manager.apply_schema_async()
        elif word == "add":
            await case.defer_async(name=names[0])
        else:
            await give_out_again()
            await app.run_worker_async(wait=False, update_heartbeat_interval=SILENCE / 3)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
