"""Results of single runs as JSON lines, so that a measurement can be interrupted, and its page."""

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.measure.benchmarks.report import machine
from tests.measure.experiments.code import whole_code
from tests.measure.experiments.results import versions

SECTION = re.compile(r"^<!-- (\S+) -->\n(.*?)(?=^<!-- |\Z)", re.DOTALL | re.MULTILINE)


class Kept:
    """The results of a part, each saved as soon as it is there; without a folder none is.

    Results of other code of fluxplain or ``module``, other versions or other ``settings`` do not
    count, and the first new one replaces them. :meth:`say` prints a line of the report, which
    :meth:`write_page` puts into the folder's README.
    """

    def __init__(
        self, folder: Path | None, module: str, part: str, settings: Mapping[str, Any]
    ) -> None:
        self._folder, self._part = folder, part
        self._lines: list[str] = []
        code = sorted(whole_code("fluxplain", module))
        of = json.dumps([versions(), code]).encode()
        self._header = {
            "fingerprint": hashlib.sha256(of).hexdigest(),
            "settings": dict(settings),
            "versions": versions(),
        }
        self._results = self._read()

    def run(self, key: str, measure: Callable[[], Any]) -> Any:
        """Return the result of a run: the one that is kept, or a new one."""
        if key not in self._results:
            self._results[key] = json.loads(json.dumps(measure()))
            self._save()
        return self._results[key]

    def say(self, line: str) -> None:
        """Print a line of the report."""
        self._lines.append(line)
        print(line, flush=True)

    def write_page(self, title: str, about: str) -> None:
        """Write the part's section of the README, and keep those of other parts."""
        if self._folder is None:
            return
        page = self._folder / "README.md"
        texts = dict(SECTION.findall(page.read_text(encoding="utf-8"))) if page.exists() else {}
        texts[self._part] = self._section(about)
        parts = [f"<!-- {name} -->\n{text.strip()}\n" for name, text in sorted(texts.items())]
        page.write_text("\n".join([f"# {title}\n", *parts]), encoding="utf-8")

    def _section(self, about: str) -> str:
        main = sys.modules["__main__"].__spec__
        module = "" if main is None else main.name.removesuffix(".__main__")
        where = {"cpu": machine()["cpu"], **versions()}
        of = ", ".join(f"{name} {value}" for name, value in where.items())
        command = shlex.join(["python", "-m", module, *sys.argv[1:]])
        return "\n\n".join(
            [
                f"## {self._part}",
                about,
                "\n".join(["```text", *self._lines, "```"]),
                f"`{command}`, {datetime.now(UTC):%Y-%m-%d}; {of}.",
            ]
        )

    @property
    def _path(self) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._part}.jsonl"

    def _read(self) -> dict[str, Any]:
        if self._path is None or not self._path.exists():
            return {}
        header, *lines = self._path.read_text(encoding="utf-8").splitlines() or [""]
        with suppress(ValueError):
            if json.loads(header) == self._header:
                return {each["key"]: each["value"] for each in map(json.loads, lines)}
        return {}

    def _save(self) -> None:
        if self._path is None:
            return
        rows: Sequence[Any] = [{"key": k, "value": v} for k, v in self._results.items()]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text("".join(f"{json.dumps(each)}\n" for each in (self._header, *rows)), "utf-8")
        new.replace(self._path)
