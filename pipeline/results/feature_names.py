"""How features are shown: their display names, units, and places among the colours."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluxplain.config import Config
from fluxplain.drift.sentences import sentence
from fluxplain.results.published import Published
from fluxplain.schemas import Change, Explanation, Note, Record

PAIR = "|"
"""Between the two names of a pair."""


@dataclass(frozen=True, slots=True)
class FeatureNames:
    """Real name → name to show, and real name → unit. Records keep the real names."""

    shown: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def configured(cls, config: Config | None) -> "FeatureNames":
        """Return the names and units of the settings; none without settings."""
        if config is None:
            return cls()
        return cls(config.dashboard.features, config.dashboard.units)

    def of(self, name: str) -> str:
        """Return the name to show for a feature, a group or a pair.

        Examples
        --------
        >>> names = FeatureNames({"feat_8": "Oil pressure"})
        >>> names.of("feat_8"), names.of("feat_8|age"), names.of("age")
        ('Oil pressure', 'Oil pressure|age', 'age')
        """
        if name in self.shown or PAIR not in name:
            return self.shown.get(name, name)
        return PAIR.join(self.shown.get(each, each) for each in name.split(PAIR))

    def with_units(self) -> "FeatureNames":
        """Return the same names with units, for axes of values.

        Examples
        --------
        >>> FeatureNames({"feat_8": "Oil pressure"}, {"feat_8": "bar"}).with_units().of("feat_8")
        'Oil pressure [bar]'
        """
        named = {name: f"{self.of(name)} [{unit}]" for name, unit in self.units.items()}
        return FeatureNames({**self.shown, **named})

    def change(self, change: Change) -> Change:
        """Return a change in which features have the names to show, also in its sentence."""
        if not self.shown:
            return change
        region, evidence = change.region, change.evidence
        if region is not None:
            conditions = [replace(c, feature=self.of(c.feature)) for c in region.conditions]
            region = replace(region, conditions=conditions)
        if evidence is not None:
            evidence = [replace(each, feature=self._known(each.feature)) for each in evidence]
        feature = self._known(change.feature)
        named = replace(change, feature=feature, region=region, evidence=evidence)
        is_ours = not change.is_notice and change.detail == sentence(change)
        return replace(named, detail=sentence(named)) if is_ours else named

    def record(self, record: Record) -> Record:
        """Return a record in which features have the names to show."""
        if isinstance(record, Change):
            return self.change(record)
        if not self.shown or not isinstance(record, Explanation | Note):
            return record
        if record.feature is not None:
            return replace(record, feature=self.of(record.feature))
        return record

    def reading(
        self, read: Callable[..., Iterator[Published]]
    ) -> Callable[..., Iterator[Published]]:
        """Return a reader of the same records, in which features have the names to show."""
        return lambda *topics: (Published(self.record(r), p) for r, p in read(*topics))

    def _known(self, name: str | None) -> str | None:
        return None if name is None else self.of(name)


REAL_NAMES = FeatureNames()
"""Shows each feature by its real name."""


def in_order(names: Iterable[str]) -> Sequence[str]:
    """Return names in the order that decides about their colours, with 2 before 10.

    Examples
    --------
    >>> in_order(["f10", "f2", "Age"])
    ['Age', 'f2', 'f10']
    """
    return sorted(set(names), key=lambda name: (_natural(name), name))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", name.casefold())
    return [
        (True, int(part[:18]), "") if part[0] in "0123456789" else (False, 0, part)
        for part in parts
    ]
