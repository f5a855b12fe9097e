"""A PostgreSQL on this machine, from Maven Central."""

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.kit.free_ports import free_ports
from tests.kit.waiting import wait_until

OTHER_USER: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
"""Who runs it: PostgreSQL refuses to run as root."""


class Database:
    """An empty PostgreSQL that listens on 127.0.0.1, without passwords.

    It has a folder of its own below the system's one for temporary files: other users cannot enter
    pytest's. The folder is removed at the end of the context.

    Parameters
    ----------
    jars
        Folder with the jar of its programs.
    """

    def __init__(self, jars: Path) -> None:
        [self._jar] = jars.glob("embedded-postgres-binaries-*.jar")
        self.port = free_ports(1)

    def query(self, statement: str, *, role: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements; return the rows of the last one."""
        address = f"host=127.0.0.1 port={self.port} user={role} dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            return self.query("SELECT true") == [(True,)]
        return False

    def _unpack(self) -> None:
        with zipfile.ZipFile(self._jar) as jar:
            [name] = [each for each in jar.namelist() if each.endswith(".txz")]
            packed = io.BytesIO(jar.read(name))
        with tarfile.open(fileobj=packed) as archive:
            archive.extractall(self._folder, filter="data")

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="fluxplain-postgresql-"))
        self._unpack()
        data = self._folder / "data"
        data.mkdir()
        if OTHER_USER:
            self._folder.chmod(0o755)
            shutil.chown(data, "nobody")
        programs = self._folder / "bin"
        options = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        subprocess.run(
            [programs / "initdb", "--pgdata", data, "--locale=C.UTF-8", *options],
            stdout=subprocess.DEVNULL,
            check=True,
            cwd=self._folder,
            **OTHER_USER,
        )
        settings = ("-h", "127.0.0.1", "-p", str(self.port), "-k", "", "-F")
        self._process = subprocess.Popen(
            [programs / "postgres", "-D", data, *settings],
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            **OTHER_USER,
        )
        wait_until(self._answers, what=lambda: "PostgreSQL answers")
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.send_signal(signal.SIGINT)  # it ends its connections
        self._process.wait()
        shutil.rmtree(self._folder)
