"""What holds for everything that a stage publishes, whatever it has read."""

from collections.abc import Sequence
from functools import cache

import jsonschema
import orjson

from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.schemas import RECORDS, BadRecordError, Record
from fluxplain.stages import Message, Stage


@cache
def validators() -> dict[type[Record], jsonschema.Draft202012Validator]:
    return {kind: jsonschema.Draft202012Validator(kind.json_schema()) for kind in RECORDS}


def assert_publishable(records: Sequence[Record], source_key: bytes | None = None) -> None:
    """Every record fits into a message, is as its schema says, and can be read."""
    assert_readable(records, source_key)
    for record in records:
        validators()[type(record)].validate(orjson.loads(record.encode()))


def assert_readable(records: Sequence[Record], source_key: bytes | None = None) -> None:
    """Every record fits into a message, with its key, and comes back as it is."""
    for record in records:
        value, key = record.encode(), record.message_key()
        key_bytes = (source_key or b"") if key is None else key.encode()
        assert len(value) + len(key_bytes) < MAX_MESSAGE_BYTES
        assert type(record).decode(value).encode() == value


def refused(stage: Stage, message: Message) -> bool:
    """Whether the message cannot be used, for what its bytes are."""
    try:
        stage.decode(message)
    except BadRecordError:
        return True
    return False
