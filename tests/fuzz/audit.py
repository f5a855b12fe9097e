"""What processes open and execute, as Python itself reports it (PEP 578)."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

EVENTS = {
    *("open", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class"),
    *("os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir", "os.chmod", "os.link"),
    *("os.symlink", "shutil.copyfile", "shutil.rmtree", "glob.glob", "urllib.Request"),
}

HOOK = """
import os
import sys

EVENTS, FOLDER = {events!r}, {folder!r}
seen = set()


def note(event, args):
    if event not in EVENTS:
        return
    about = args[:2] if event == "pickle.find_class" else args[:1]
    line = ascii(" ".join(map(str, (event, *about))))[1:-1].encode() + b"\\n"
    if line not in seen:
        seen.add(line)
        os.write(LOG, line)


LOG = os.open(os.path.join(FOLDER, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
sys.addaudithook(note)
"""


class Audit:
    """Hears of what Python processes do, each thing once a process, in a new folder.

    Examples
    --------
    >>> import subprocess, tempfile
    >>> audit = Audit(Path(tempfile.mkdtemp()) / "audit")
    >>> command = [sys.executable, "-c", "open('/etc/passwd').close()"]
    >>> _ = subprocess.run(command, env={**os.environ, **audit.environment}, check=True)
    >>> "open /etc/passwd" in audit.heard
    True
    """

    def __init__(self, folder: Path) -> None:
        self._heard = folder / "heard"
        self._heard.mkdir(parents=True)
        hook = HOOK.format(events=EVENTS, folder=str(self._heard))
        (folder / "sitecustomize.py").write_text(hook)
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.environment = {"PYTHONPATH": os.pathsep.join(paths)}

    @property
    def heard(self) -> set[str]:
        """What was done so far, as "event argument"."""
        return {line for path in self._heard.iterdir() for line in path.read_text().splitlines()}

    def strange(self, before: set[str], allowed: Sequence[Path]) -> list[str]:
        """Return what was done since, but for opening what is in allowed folders, and in Python's.

        ``before`` is what was heard until then.
        """
        python = {sys.prefix, sys.base_prefix, *(p for p in sys.path if p)}
        inside = tuple(
            f"{name} {path}/" for path in {*map(str, allowed), *python} for name in EVENTS
        )
        return sorted(each for each in self.heard - before if not each.startswith(inside))
