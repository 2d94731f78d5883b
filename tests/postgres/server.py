"""A PostgreSQL server of the tests' own: started as an unprivileged user, stopped, killed and started again."""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

VARIABLE = "GNL_TEST_POSTGRES_URL"
"""Names a server to use instead of one that is started; it cannot be killed, so those tests do not use it."""

INSTALL = f"install PostgreSQL (apt-get install postgresql), or set {VARIABLE} to the URL of a server"


class NoServerError(Exception):
    """There is no PostgreSQL here to test against."""


class Server:
    """A server in a folder of its own, reached through a socket there; no port is opened.

    It syncs every commit: what it acknowledged must survive its death.
    """

    def __init__(self) -> None:
        self._binaries = _binaries()
        self.folder = Path(
            tempfile.mkdtemp(prefix="gnl-pg-", dir="/tmp")
        )  # short, as the path of a socket must be
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        """Where it listens, as libpq takes it."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        options = f"-k {self.folder} -c listen_addresses= -c max_connections=50"
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-w", "-o", options, "start")

    def kill(self) -> None:
        """End it as a crash does: at once, without a checkpoint."""
        self._run("pg_ctl", "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        """End it and leave nothing behind."""
        self.kill()
        shutil.rmtree(self.folder)

    def _run(self, tool: str, *arguments: str) -> None:
        user = self._user
        subprocess.run(
            [self._binaries / tool, "-D", self.folder / "data", *arguments],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )


def _binaries() -> Path:
    """The folder of ``initdb`` and ``pg_ctl``; as root, one that the user ``nobody`` can enter."""
    for folder in _candidates():
        programs = all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres"))
        if programs and (os.geteuid() != 0 or _open_to_all(folder)):
            return folder
    raise NoServerError(INSTALL)


def _candidates() -> Iterator[Path]:
    if found := shutil.which("pg_ctl"):
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))


def create_database(server_url: str) -> str:
    """Make an empty database on a server; gives its URL."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    administer(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return server_url.replace("/postgres?", f"/{name}?", 1)


def administer(url: str, statement: sql.Composable | sql.SQL) -> list[tuple[object, ...]]:
    """Run one statement on a connection of its own; gives its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
