"""Schema drift: features that vanish, come back, or appear without being configured."""

from collections.abc import Iterable, Sequence

GONE_AFTER = 1000
"""Consecutive observations without a value after which a feature counts as gone."""

MOST_NAMES = 1000
"""Unconfigured names to remember; further ones are not reported."""

LONGEST_NAME = 300
"""Characters to remember of a name; a second name with the same beginning is not reported."""


class Evolution:
    """Reports when producers begin to send other fields than before.

    Unconfigured fields of the first 1,000 observations were left out on purpose and are not
    reported.

    Examples
    --------
    >>> evolution = Evolution()
    >>> for _ in range(1000):
    ...     reports = evolution.see(missing=["age"], others=["id"])
    >>> reports
    {'age': 'age has had no value in the last 1,000 observations'}
    >>> evolution.see(missing=[], others=["id", "colour"])
    {'age': 'age has values again, after 1,000 observations without', None: 'x has colour, which \
is not configured, and was not there before: it is not used'}
    """

    def __init__(self) -> None:
        self._absent: dict[str, int] = {}
        self._others: set[str] = set()
        self._seen = 0

    def see(self, missing: Sequence[str], others: Iterable[str]) -> dict[str | None, str]:
        """Take an observation; return feature → report, with None for all unconfigured fields.

        Parameters
        ----------
        missing
            Features without a value.
        others
            Its unconfigured fields.
        """
        reports: dict[str | None, str] = {}
        self._seen += 1
        for name in [name for name in self._absent if name not in missing]:
            absent = self._absent.pop(name)
            if absent >= GONE_AFTER:
                reports[name] = f"{name} has values again, after {absent:,} observations without"
        for name in missing:
            self._absent[name] = self._absent.get(name, 0) + 1
            if self._absent[name] == GONE_AFTER:
                reports[name] = f"{name} has had no value in the last {GONE_AFTER:,} observations"
        shown = dict.fromkeys(name[:LONGEST_NAME] for name in others)
        new = [name for name in shown if name not in self._others]
        new = new[: MOST_NAMES - len(self._others)]
        if new:
            self._others.update(new)
            if self._seen > GONE_AFTER:
                names = (", ".join(new[:10]) + (" …" if len(new) > 10 else ""))[:LONGEST_NAME]
                reports[None] = (
                    f"x has {names}, which is not configured, and was not there before: it is not "
                    "used"
                )
        return reports
