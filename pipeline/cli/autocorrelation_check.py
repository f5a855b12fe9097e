"""Looks in the topic `features` for inputs that resemble their own past for too long."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import BadRecordError, Observation
from fluxplain.stages.intake.validation import ObservationValidator

SAMPLE = 20_000
"""Latest records of a partition to read: enough for reservoirs of up to about 260 records."""

SAMPLE_S = 5.0
"""Seconds to read them."""


def autocorrelation_warnings(settings: Config) -> Sequence[str]:
    """Return the methods' warnings about the latest records of the largest partition.

    There are none if the records are too few, or if the topic cannot be read.
    """
    # loads the compiler
    from fluxplain.stages.autocorrelation_watch import AutocorrelationWatch  # noqa: PLC0415

    warnings: list[str] = []
    with suppress(BrokerError):
        with TopicReader(settings, [Observation.TOPIC], from_beginning=True, newest=0) as reader:
            sizes = {tp.partition: len(offsets) for tp, offsets in reader.extent().items()}
        partition = max(sizes, key=lambda each: sizes[each])
        own = settings.of_stream(partition)
        watch = AutocorrelationWatch(own)
        check = ObservationValidator(own.features, own.label.type)
        for value in _latest(settings, partition):
            # labels and incomplete observations are left out
            with suppress(BadRecordError):
                warnings += watch.update(check.x(Observation.decode(value))).values()
    return warnings


def _latest(settings: Config, partition: int) -> Iterator[bytes | None]:
    until = time.monotonic() + SAMPLE_S
    with TopicReader(
        settings,
        [Observation.TOPIC],
        from_beginning=True,
        starts={partition: 0},
        newest=SAMPLE,
    ) as reader:
        while reader.backlog and time.monotonic() < until:
            for message in reader.poll(0.2):
                yield message.value()
