"""Compares what was published with the reference."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Identity = tuple[Any, ...]

Records = Mapping[Identity, set[bytes]]
"""Identity → the different records under it, in the order of their first appearance."""

ORDERED = {"predictions", "reasons", "explanations", "changes"}
"""Topics in which a reader meets the records of one stream, feature and method by rising seq."""

SHOWN = 3
"""Examples of each kind of difference."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How what was published differs from the reference; `examples` are sentences about that.

    The disordered came behind a later one of the same kind: a reader that takes only what is newer
    than what it has would lose them.
    """

    missing: Sequence[Identity]
    different: Sequence[Identity]
    unexpected: Sequence[Identity]
    disordered: Sequence[Identity]
    examples: Sequence[str]

    def numbers(self) -> dict[str, int]:
        kinds = ("missing", "different", "unexpected", "disordered")
        return {kind: len(getattr(self, kind)) for kind in kinds}

    def problems(self) -> list[str]:
        """Return what is wrong, a few words each; nothing if all is well."""
        return [f"{n:,} {kind}" for kind, n in self.numbers().items() if n]


def compare(
    published: Records,
    expected: Records,
    is_poison: Callable[[Identity], bool] = lambda _key: False,
) -> Comparison:
    """Compare; dead letters of poison are in no reference."""
    missing = [key for key in expected if key not in published]
    unexpected = [key for key in published if key not in expected and not is_poison(key)]
    different = [key for key in expected if key in published and published[key] != expected[key]]
    return Comparison(
        missing,
        different,
        unexpected,
        disordered(published),
        [
            *(f"missing: {_text(key, expected)}" for key in missing[:SHOWN]),
            *(
                f"different: {_text(key, published)}\n  instead of {_text(key, expected)}"
                for key in different[:SHOWN]
            ),
            *(f"unexpected: {_text(key, published)}" for key in unexpected[:SHOWN]),
        ],
    )


def disordered(published: Mapping[Identity, object]) -> list[Identity]:
    """Return the identities that first appeared behind a later one of the same kind.

    Examples
    --------
    >>> disordered(dict.fromkeys([("predictions", "s", 1), ("predictions", "s", 3)]))
    []
    >>> disordered(dict.fromkeys([("predictions", "s", 3), ("predictions", "s", 1)]))
    [('predictions', 's', 1)]
    """
    newest: dict[Identity, int] = defaultdict(lambda: -1)
    behind = []
    for key in published:
        *kind, seq = key
        if key[0] not in ORDERED:
            continue
        if seq < newest[tuple(kind)]:
            behind.append(key)
        newest[tuple(kind)] = max(newest[tuple(kind)], seq)
    return behind


def _text(key: Identity, records: Records) -> str:
    versions = b" | ".join(sorted(records[key]))
    return f"{key}: {versions.decode(errors='backslashreplace')[:600]}"
