"""A transaction pooler of the tests' own: pgbouncer, started before a server's socket as an unprivileged user."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

INSTALL = "install pgbouncer (apt-get install pgbouncer)"
_CONFIGURATION = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
pool_mode = transaction
default_pool_size = 2
auth_type = any
logfile = {folder}/log
"""


class NoPoolerError(Exception):
    """There is no pgbouncer here."""


class Pooler:
    """Two connections of the server for any number of clients; a client has one for the length of a transaction.

    Args:
        server: The folder of the server's socket.
    """

    def __init__(self, server: str) -> None:
        found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if found is None:
            raise NoPoolerError(INSTALL)
        self._folder = Path(tempfile.mkdtemp(prefix="gnl-pool-", dir="/tmp"))
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(_CONFIGURATION.format(server=server, folder=self._folder))
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if user:
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        self._process = subprocess.Popen(
            [found, "-q", str(configuration)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )

    def url(self, database: str) -> str:
        """The URL of a database behind the pooler."""
        return f"postgresql://postgres@/{database}?host={self._folder}&port=6432"

    def wait(self, database: str) -> None:
        """Wait until it takes connections."""
        patience = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url(database)).close()
            except psycopg.OperationalError:
                assert time.monotonic() < patience, (self._folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def remove(self) -> None:
        """End it and leave nothing behind."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)
