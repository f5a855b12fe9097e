"""Decodes messages in the wire format into plain JSON."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
from confluent_kafka import Message as KafkaMessage

from fluxplain.kafka.headers import headers_of
from fluxplain.kafka.registry import avro_values as avro
from fluxplain.kafka.registry.registry_client import Registry
from fluxplain.kafka.registry.wire import Framed, Reference, unframed
from fluxplain.schemas import BadRecordError
from fluxplain.schemas.record import load_object
from fluxplain.stages.stage import Message

MOST_SCHEMAS = 1_000
"""Largest number of cached schemas; the least recently used one is evicted."""

Read = Callable[[bytes], dict[str, Any]]


class Decoder:
    """Decodes messages; requests each schema from the registry once.

    Unknown schemas are not cached: they may be registered later.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._readers: OrderedDict[Reference, Read | str] = OrderedDict()

    def is_known(self, message: Message) -> bool:
        """Return whether a message can be decoded without a request."""
        try:
            found = unframed(message.value, message.headers)
        except BadRecordError:
            return True
        return found is None or found.schema in self._readers

    def opened(self, message: Message) -> Message:
        """Return a message with its fields, or with the reason why it is unreadable (its flaw).

        Raises RegistryError if the registry does not answer.
        """
        try:
            found = unframed(message.value, message.headers)
            if found is None:
                return message
            return replace(message, decoded=self._reader(found.schema)(found.payload))
        except BadRecordError as error:
            return replace(message, flaw=str(error))

    def open_in_place(self, message: KafkaMessage) -> None:
        """Turn a message of librdkafka into plain JSON; leave an unreadable one unchanged.

        Raises RegistryError if the registry does not answer.
        """
        try:
            if found := unframed(message.value(), headers_of(message)):
                message.set_value(self._json(found))
        except BadRecordError:
            pass  # the reader reports that it is not JSON

    def _json(self, found: Framed) -> bytes:
        read = self._reader(found.schema)
        if read is load_object:
            return found.payload
        try:
            return orjson.dumps(read(found.payload))
        except TypeError as error:  # orjson writes no deep nesting
            raise BadRecordError(f"cannot be written as JSON: {error}") from None

    def _reader(self, schema: Reference) -> Read:
        if schema not in self._readers:
            self._readers[schema] = self._fetch(schema)
            if len(self._readers) > MOST_SCHEMAS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(schema)
        read = self._readers[schema]
        if isinstance(read, str):
            raise BadRecordError(read)
        return read

    def _fetch(self, schema: Reference) -> Read | str:
        """Return a reader of a schema's values, or the reason why there is none."""
        kind, texts = self.registry.schema(schema)
        if kind == "JSON":
            return load_object
        if kind != "AVRO":
            return f"its schema is {kind}, but only JSON Schema and Avro are read"
        try:
            return avro.reader(texts)
        except BadRecordError as error:
            return str(error)
