"""Checks what a consumer can see: each message that was accepted led to a result, exactly one.

It takes nothing from the pipeline's own topics, and nothing from the reference.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from fluxplain.schemas import BadRecordError, parse_stream
from tests.kit.kafka_pipeline import Published
from tests.measure.chaos.poison import Place

Fed = Mapping[tuple[str, int], Sequence[bytes | None]]
"""(topic without the prefix, partition) → the values in it, by offset."""

SHOWN = 3


IN_FLIGHT = 1_000
"""Messages that a producer may send again at once."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What is wrong with the results.

    `silent` are observations and labels that have neither a prediction nor a dead letter,
    `contradicting` identities with more than one content; `not_one_letter` has poison without
    exactly one dead letter, and how many it has.
    """

    silent: Sequence[Place]
    contradicting: Sequence[tuple[Any, ...]]
    not_one_letter: Mapping[Place, int]

    def problems(self) -> list[str]:
        found = {
            "silent (neither prediction nor dead letter)": self.silent,
            "identities with two contents": self.contradicting,
            "poison without exactly one dead letter": self.not_one_letter,
        }
        return [f"{len(each):,} {name}" for name, each in found.items() if each]

    def numbers(self) -> dict[str, object]:
        by_topic = Counter(topic for topic, _, _ in self.silent)
        return {
            "silent": ", ".join(f"{n:,} of {topic}" for topic, n in by_topic.items()) or 0,
            "identities with two contents": len(self.contradicting),
            "poison without exactly one dead letter": len(self.not_one_letter),
        }

    def examples(self) -> list[str]:
        return [
            *(f"silent: {place}" for place in self.silent[:SHOWN]),
            *(f"two contents: {key}" for key in self.contradicting[:SHOWN]),
            *(f"{n} dead letters: {p}" for p, n in list(self.not_one_letter.items())[:SHOWN]),
        ]


def look(
    published: Published,
    fed: Fed,
    poison: Collection[Place],
    *,
    prefix: str,
    read: Collection[str],
    joined: bool,
) -> Outside:
    """Compare what was accepted with what was published.

    `fed` is what stands in ``features``, and in ``labels`` if topics are joined: a prediction's seq
    is no offset of ``features`` then. Of the topics that a role may `read`, without the `prefix`,
    poison is a dead letter.
    """
    letters = letters_at(published, prefix)
    answered = _Answers(published)
    excused = set(poison)
    silent = [
        place
        for (topic, partition), values in fed.items()
        for offset, value in enumerate(values)
        if (place := (topic, partition, offset)) not in excused
        and not letters[place]
        and not answered.has(place, value, joined=joined)
    ]
    return Outside(
        silent,
        [key for key, contents in published.items() if len(contents) > 1],
        {each: letters[each] for each in poison if each[0] in read and letters[each] != 1},
    )


def letters_at(published: Published, prefix: str) -> Counter[Place]:
    """Return place → how many dead letters it has, with different identities.

    Those of a feature (their key is its name) are of an observation that has its prediction.
    """
    return Counter(
        (topic.removeprefix(prefix), partition, offset)
        for name, topic, partition, offset, *_ in (k for k in published if k[0] == "dead-letters")
    )


class _Answers:
    """The predictions, by what a consumer knows of an observation."""

    def __init__(self, published: Published) -> None:
        self._seqs: set[tuple[int, int]] = set()
        self._labels: dict[tuple[int, Any], list[Any]] = defaultdict(list)
        for key, contents in published.items():
            if key[0] != "predictions":
                continue
            fields = orjson.loads(next(iter(contents)))
            partition = parse_stream(fields["stream"])[1]
            self._seqs.add((partition, fields["seq"]))
            self._labels[partition, fields["id"]].append(fields["y"])

    def has(self, place: Place, value: bytes | None, *, joined: bool) -> bool:
        topic, partition, offset = place
        if not joined:
            return (partition, offset) in self._seqs
        try:
            fields = orjson.loads(value or b"")
            known = self._labels.get((partition, fields["id"]))
            return known is not None and (topic == "features" or fields["y"] in known)
        except (orjson.JSONDecodeError, BadRecordError, KeyError, TypeError):
            return False


def sent_again(log: Sequence[bytes | None], fed: Sequence[bytes | None]) -> int | None:
    """Return how many messages a log holds again; None if else it is not what was fed.

    When all brokers were killed at once, the restarted ones may know a message, but not who wrote
    it. Its producer, which had no answer, then begins a new epoch and sends it again.

    Examples
    --------
    >>> fed = [b"a", b"b", b"c", b"d"]
    >>> sent_again([b"a", b"b", b"c", b"b", b"c", b"d"], fed)
    2
    >>> sent_again([b"a", b"c", b"b", b"d"], fed), sent_again([b"a", b"b", b"c"], fed)
    (None, None)
    """
    done = again = 0
    for value in log:
        if done < len(fed) and value == fed[done]:
            done += 1
        elif value in fed[max(done - IN_FLIGHT, 0) : done]:
            again += 1
        else:
            return None
    return again if done == len(fed) else None
