"""Feeds batches that stop Kafka's usual clients, and checks what becomes of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import orjson

from fluxplain.stages import Message
from tests.fuzz.hostile_control import hostile_control, withdrawn
from tests.fuzz.poison import poisons
from tests.kit.batches import batch, record, send_batches
from tests.kit.comparison import compare
from tests.kit.kafka_pipeline import KafkaPipeline, Published, identity, reference_of

INPUTS = {"features": None, "labels": b'{"id": "unknown", "y": 1}', "control": b'{"every": 1}'}
"""Topics that users write → a good value for it; None for one of the observations."""


HOSTILE: dict[str, Sequence[bytes]] = {
    "features": (b"\xff", b"{}"),
    "labels": (b'{"id": [], "y": 1}', b'{"y": 1}'),
}
"""Values that no stage can use, fed in each round beside the poison."""

TOGETHER = 50
"""Values in one batch; some have 100 kB."""

CONTROLS = 200
"""Control records a round that no stage can use, among them paths in place of digests."""


class Feeder:
    """Sends batches to a topic, and keeps what each offset must give."""

    def __init__(self, pipeline: KafkaPipeline, topic: str) -> None:
        self._servers = pipeline.config.kafka.bootstrap_servers
        self.topic = pipeline.config.topic(topic)
        self.messages: list[Message] = []

    def good(self, *values: bytes) -> None:
        few = [values[i : i + TOGETHER] for i in range(0, len(values), TOGETHER)]
        made = [batch([record(i, value) for i, value in enumerate(each)]) for each in few]
        for each, offset in zip(few, send_batches(self._servers, self.topic, made), strict=True):
            assert isinstance(offset, int), offset
            self.messages += [
                Message(self.topic, 0, offset + i, None, value) for i, value in enumerate(each)
            ]

    def poison(self, good: bytes) -> None:
        made = [make(good) for make in poisons().values()]
        offsets = send_batches(self._servers, self.topic, [each.batch for each in made])
        for name, each, offset in zip(poisons(), made, offsets, strict=True):
            assert isinstance(offset, int), f"{name}: {offset}"
            self.messages += each.messages(self.topic, 0, offset)

    @property
    def unusable(self) -> dict[int, str | None]:
        """Offset → reason of what ``join`` cannot pass on; None for any reason."""
        return {m.offset: m.flaw for m in self.messages if m.flaw or m.value is None}


def letters(published: Published, topic: str) -> dict[int, bytes]:
    """Return offset → the dead letter, of those from a topic."""
    return {
        int(str(key[3])): next(iter(values))
        for key, values in published.items()
        if key[0] == "dead-letters" and key[1] == topic
    }


def wrong_letters(
    published: Published, topic: str, expected: Mapping[int, str | None]
) -> list[str]:
    """Describe the dead letters from a topic that are missing or have another reason."""
    found = {at: orjson.loads(value)["reason"] for at, value in letters(published, topic).items()}
    return [
        f"{topic} offset {offset}: {found.get(offset)!r} instead of {reason!r}"
        for offset, reason in expected.items()
        if offset not in found or reason not in {None, found[offset]}
    ]


def feed_joined(
    pipeline: KafkaPipeline, good: Sequence[bytes], rounds: int, *, announced: int = 0
) -> list[Feeder]:
    """Send observations, and in as many rounds every kind of poison into every input.

    In each round as many absent models as ``announced`` says are announced, and then withdrawn.
    """
    inputs = {name: Feeder(pipeline, name) for name in INPUTS}
    each = len(good) // rounds
    controls = hostile_control(CONTROLS * rounds)
    absent = withdrawn(announced * rounds)
    for i in range(0, len(good), each):
        inputs["features"].good(*good[i : i + each])
        for name, value in INPUTS.items():
            inputs[name].poison(value or good[i])
            inputs[name].good(*HOSTILE.get(name, ()))
        control = inputs["control"]
        control.good(*islice(controls, CONTROLS))
        for pair in islice(absent, announced):
            control.good(*pair)
    return list(inputs.values())


def joined_problems(pipeline: KafkaPipeline, inputs: Sequence[Feeder]) -> Iterator[str]:
    """Compare what a pipeline that joins topics published with what it must, when it is idle."""
    joined = pipeline.joined(0)
    expected = reference_of(pipeline.config, joined)
    for each in inputs:
        unusable = each.unusable
        yield from wrong_letters(pipeline.published, each.topic, unusable)
        for offset, letter in letters(pipeline.published, each.topic).items():
            if offset in unusable:  # join publishes it: no stage of the reference does
                expected[identity("dead-letters", letter)].add(letter)
        passed = [(each.topic, 0, m.offset) for m in each.messages if m.offset not in unusable]
        if passed != [m.origin for m in joined if m.origin[0] == each.topic]:
            yield f"of {each.topic} others were passed on than can be used"
    found = compare(pipeline.published, expected)
    if pipeline.published != expected:
        yield from (*found.problems(), *found.examples)


def peaks(pipeline: KafkaPipeline) -> dict[str, int]:
    """Return the bytes of each worker that were in memory at most."""
    sizes = {}
    for name, pid in pipeline.workers.running().items():
        status = Path(f"/proc/{pid}/status").read_text()
        sizes[name] = int(status.split("VmHWM:")[1].split()[0]) * 1024
    return sizes
