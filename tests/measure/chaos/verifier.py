"""Compares what was published with the reference."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kit.kafka_pipeline import Published

Identity = tuple[Any, ...]

ORDERED = {"predictions", "explanations", "changes"}
"""Topics in which a reader meets the records of one stream, feature and method by rising seq."""

SHOWN = 3
"""Examples of each kind of difference."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How what was published differs from the reference.

    Attributes
    ----------
    expected, published
        How many identities there are.
    missing
        Identities that nothing was published under.
    different
        Identities with other bytes than the reference's, be it beside the right ones.
    unexpected
        Identities that the reference lacks.
    disordered
        Identities that came behind a later one of the same kind: a reader that takes only what is
        newer than what it has would lose them.
    duplicated
        Messages that repeated another one, bit for bit: readers drop them.
    examples
        Sentences about the first of these.
    """

    expected: int
    published: int
    missing: Sequence[Identity]
    different: Sequence[Identity]
    unexpected: Sequence[Identity]
    disordered: Sequence[Identity]
    duplicated: int
    examples: Sequence[str] = field(default=())

    def problems(self) -> list[str]:
        """Return what is wrong, a few words each; nothing if all is well."""
        kinds = ("missing", "different", "unexpected", "disordered")
        return [f"{len(found):,} {kind}" for kind in kinds if (found := getattr(self, kind))]


def compare(
    published: Published,
    expected: Published,
    messages: int,
    is_poison: Callable[[Identity], bool] = lambda _key: False,
) -> Comparison:
    """Compare.

    Parameters
    ----------
    published
        Identity → the different records under it, in the order of their first appearance.
    expected
        The same of the reference.
    messages
        How many messages were read.
    is_poison
        Whether an identity is that of a dead letter of poison, which no reference has.
    """
    missing = [key for key in expected if key not in published]
    unexpected = [key for key in published if key not in expected and not is_poison(key)]
    different = [key for key in expected if key in published and published[key] != expected[key]]
    return Comparison(
        expected=len(expected),
        published=len(published),
        missing=missing,
        different=different,
        unexpected=unexpected,
        disordered=disordered(published),
        duplicated=messages - sum(map(len, published.values())),
        examples=[
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


def _text(key: Identity, records: Published) -> str:
    versions = b" | ".join(sorted(records[key]))
    return f"{key}: {versions.decode(errors='backslashreplace')[:600]}"
