"""What became of the observations that a command ran through the pipeline in-process."""

from collections import Counter
from collections.abc import Sequence

import orjson

from fluxplain.cli import common as cli
from fluxplain.config import Config
from fluxplain.results.published import LocalFiles
from fluxplain.schemas import DeadLetter, Prediction, Record
from fluxplain.schemas.record import Target
from fluxplain.sources import SourceError

REMEDY = '[missing] in the settings says what to do: policy = "impute" fills in a value'

MOST_NAMES = 5
"""Features that a warning names."""


class Summary:
    """Counts what the user should know of at the end: unused records and labels that never vary.

    Parameters
    ----------
    config
        The settings of the stream.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lacking: dict[str, Counter[str]] = {"dead-letter": Counter(), "skip": Counter()}
        self._unused = dict.fromkeys(self._lacking, 0)
        self._letter: DeadLetter | None = None
        self._label: Target | None = None
        self._labelled, self._is_constant = 0, True

    def take(self, record: Record) -> None:
        """Take the next published record."""
        if isinstance(record, DeadLetter):
            self._letter = record
            self._count("dead-letter", _absent(record, self._config))
        elif isinstance(record, Prediction):
            self._count("skip", record.missing or ())
            if record.y is not None:
                self._is_constant &= not self._labelled or record.y == self._label
                self._labelled, self._label = self._labelled + 1, record.y

    def _count(self, policy: str, missing: Sequence[str]) -> None:
        names = [name for name in missing if self._config.missing.of(name) == policy]
        self._lacking[policy].update(names)
        self._unused[policy] += bool(names)

    def say(self, files: LocalFiles, source: str) -> None:
        """Print warnings; raise SourceError if no record could be used."""
        for policy, what in (("dead-letter", "went to dead-letters"), ("skip", "got skipped")):
            if self._unused[policy]:
                cli.warn(f"{self._missing(policy)}, and {what}; {REMEDY}")
        letters, predictions = files.counts["dead-letters"], files.counts["predictions"]
        if self._letter is not None:
            were = "record was" if letters == 1 else "records were"
            cli.warn(f"{letters:,} {were} not used; the last one: {self._letter.reason}")
        if self._letter is not None and not predictions:
            raise SourceError(f"all records of {source} went to dead-letters")
        if predictions and self._unused["skip"] == predictions:
            raise SourceError(f"all records of {source} were skipped or went to dead-letters")
        if self._labelled > 1 and self._is_constant and self._config.label.type != "none":
            cli.warn(
                f"All {self._labelled:,} labels are {orjson.dumps(self._label).decode()}: there is "
                "nothing to learn, so no feature matters. Is it the right column?"
            )

    def _missing(self, policy: str) -> str:
        counts = self._lacking[policy].most_common()
        named = ", ".join(f"{name} ({n:,})" for name, n in counts[:MOST_NAMES])
        more = ", …" if len(counts) > MOST_NAMES else ""
        records = "record" if self._unused[policy] == 1 else "records"
        return f"{self._unused[policy]:,} {records} lacked a value of {named}{more}"


def _absent(letter: DeadLetter, config: Config) -> list[str]:
    """Return the features without a value in an unused observation."""
    try:
        x = orjson.loads(letter.original() or b"null")["x"]
        return [name for name in config.features if x.get(name) is None]
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return []  # the reason is another one
