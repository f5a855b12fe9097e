"""Limits on every message, so that no state and no published record grows without bound.

The pipeline's own topics are checked too: anybody may have written to them.
"""

from collections.abc import Container, Iterable, Sequence
from operator import lt

from fluxplain.schemas import BadRecordError, parse_stream
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.dead_letter import MAX_KEY_BYTES
from fluxplain.schemas.numbers import are_moderate
from fluxplain.schemas.record import MAX_RECORD_BYTES, Label, Value
from fluxplain.stages.stage import Message

MAX_TEXT = 1_000
"""Longest text, in characters, of a category, a label, an id or a time: published records repeat
them and must stay below the broker's limit of 1 MB a message."""

SHORT_TEXT = 64
"""Length to which texts are cut where they only say which observation it is, or where it lies."""

MAX_PARTITIONS = 10_000
"""Largest number of partitions of ``features``, each of which has a state: ten times as many as can
be configured."""

MAX_RUN = 256
"""Most observations in one message of evaluations: four times what a worker writes."""

MAX_SEQ = 2**62
"""Largest offset: sums of two fit into 64 bits."""

HEADER_MEMORY_BYTES = 200
"""Approximate memory of a header, in bytes, besides its own content."""

NUMBER_BYTES = 26
"""Longest number in JSON, in bytes, with its comma."""


def text_bytes(values: Iterable[Label | Value]) -> int:
    """Return an upper bound of the bytes that the texts among some values need in JSON."""
    return 6 * sum([len(value) for value in values if isinstance(value, str)])


def check_fits(what: str, numbers: int, texts: Iterable[Label | Value] = ()) -> None:
    """Raise ``ValueError`` if so many numbers, and these texts, may not fit into a message."""
    size = NUMBER_BYTES * numbers + text_bytes(texts)
    if size > MAX_RECORD_BYTES:
        raise ValueError(
            f"{what} may need {size:,} bytes, but a message holds {MAX_RECORD_BYTES:,}: "
            "take fewer grid points, inner samples or classes"
        )


def check_at_most(name: str, n: int, unit: str, most: int) -> None:
    """Raise ``BadRecordError`` if something has more of a unit than it may have."""
    if n > most:
        raise BadRecordError(f"{name} has {n:,} {unit}, but must have at most {most:,}")


def check_length(name: str, value: object) -> None:
    """Raise ``BadRecordError`` if the value is a text that is too long."""
    if isinstance(value, str):
        check_at_most(name, len(value), "characters", MAX_TEXT)


def check_key(message: Message) -> None:
    """Raise ``BadRecordError`` if the message's key is too long to be passed on."""
    check_at_most("the key", len(message.key or b""), "bytes", MAX_KEY_BYTES)


def check_origin(source: str, explained: Container[str], stream: str, feature: str) -> None:
    """Raise ``BadRecordError`` unless a record's stream and feature are configured.

    ``source`` is the full name of the topic of observations, ``explained`` holds the names of the
    features and groups.
    """
    topic, partition = parse_stream(stream)
    if topic != source or partition >= MAX_PARTITIONS:
        raise BadRecordError(f"stream {stream} is no partition of {source}")
    if feature not in explained:
        raise BadRecordError(f"feature {feature[:MAX_TEXT]!r} is not configured")


def check_order(previous_seq: int | None, seqs: Sequence[int]) -> None:
    """Raise ``BadRecordError`` unless the seqs are offsets that increase."""
    before = -1 if previous_seq is None else previous_seq
    if before < -1 or not all(map(lt, (before, *seqs), seqs)):
        raise BadRecordError("seqs must be offsets that increase, beginning behind previous_seq")
    if seqs and seqs[-1] > MAX_SEQ:
        raise BadRecordError(f"seqs must be offsets up to {MAX_SEQ}")


def check_contrasts(contrasts: Iterable[Contrast], seqs: Sequence[int]) -> None:
    """Raise ``BadRecordError`` unless contrasts are of some of the observations, one of each."""
    known, before = {*seqs}, -1
    for each in contrasts:
        if each.seq not in known or each.seq <= before or each.since >= each.seq:
            raise BadRecordError("contrasts must be of some of seqs, in order, with older models")
        if not are_moderate((each.new, each.old, each.new_then, each.old_then)):
            raise BadRecordError("a number of a contrast is not finite or too large")
        before = each.seq
