"""Schema drift: features that vanish or come back, and new unconfigured fields."""

from collections.abc import Iterable, Sequence

GONE_AFTER = 1000
"""Consecutive observations without a value after which a feature counts as gone."""

MOST_NAMES = 1000
"""Largest number of unconfigured names remembered; further ones are not reported."""

LONGEST_NAME = 300
"""Characters remembered of a name; a second name with the same beginning is not reported."""


class SchemaDrift:
    """Reports when producers change the fields that they send.

    Unconfigured fields of the first 1,000 observations count as left out on purpose.

    Examples
    --------
    >>> schema_drift = SchemaDrift()
    >>> for _ in range(1000):
    ...     reports = schema_drift.see(missing=["age"], others=["id"])
    >>> reports
    {'age': 'age has had no value in the last 1,000 observations'}
    >>> schema_drift.see(missing=[], others=["id", "colour"])
    {'age': 'age has values again, after 1,000 observations without', None: 'x has new fields that \
are not configured, and are ignored: colour'}
    """

    def __init__(self) -> None:
        self._absent: dict[str, int] = {}
        self._others: set[str] = set()
        self._seen = 0

    def see(self, missing: Sequence[str], others: Iterable[str]) -> dict[str | None, str]:
        """Take an observation; return feature → report, under None the unconfigured fields.

        ``missing`` are features without a value, ``others`` the unconfigured fields.
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
                    f"x has new fields that are not configured, and are ignored: {names}"
                )
        return reports
