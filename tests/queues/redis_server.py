"""A Redis of the tests' own: from the machine, or from the wheel in the environment; reached through a socket."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

INSTALL = "install Redis (apt-get install redis-server)"


class NoRedisError(Exception):
    """There is no Redis here."""


class RedisServer:
    """A server in a folder of its own that keeps nothing on the disk."""

    def __init__(self) -> None:
        found = next((path for path in _candidates() if path and Path(path).exists()), None)
        if found is None:
            raise NoRedisError(INSTALL)
        self._folder = Path(tempfile.mkdtemp(prefix="gnl-redis-", dir="/tmp"))
        self.socket = self._folder / "redis.sock"
        options = ("--port", "0", "--unixsocket", str(self.socket), "--save", "", "--dir", str(self._folder))
        self._process = subprocess.Popen([found, *options], stdout=subprocess.DEVNULL)
        self._wait()

    @property
    def url(self) -> str:
        """Where it listens, as Celery takes it."""
        return f"redis+socket://{self.socket}"

    def _wait(self) -> None:
        patience = time.monotonic() + 30
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            while True:
                try:
                    client.ping()
                except redis.ConnectionError:
                    assert time.monotonic() < patience
                    time.sleep(0.05)
                else:
                    return

    def remove(self) -> None:
        """End it and leave nothing behind."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)


def _candidates() -> Iterator[str | None]:
    yield shutil.which("redis-server")
    yield str(Path(sys.executable).with_name("redis-server"))
    # An environment of another Python, for which there is no wheel, may stand beside that of the repository.
    yield str(Path(__file__).parents[2] / ".venv/bin/redis-server")
