"""Messages in the wire format are opened: what is in them is as if it were plain JSON."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
from confluent_kafka import Message as KafkaMessage

from pipeline.kafka.headers import headers_of
from pipeline.kafka.registry import avro
from pipeline.kafka.registry.client import Registry
from pipeline.kafka.registry.wire import Framed, Reference, unframed
from pipeline.stages.base import Message
from schemas import BadRecordError
from schemas.record import load_object

MOST_SCHEMAS = 1_000
"""Remembered; the one that was used longest ago is asked for again."""


class Decoder:
    """Opens messages; the registry is asked for each schema once.

    That a schema is unknown is not remembered: it may be registered later.

    Parameters
    ----------
    registry
        What has the schemas.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._readers: OrderedDict[Reference, avro.Read | str] = OrderedDict()

    def is_known(self, message: Message) -> bool:
        """Return whether a message can be opened without asking the registry."""
        try:
            found = unframed(message.value, message.headers)
        except BadRecordError:
            return True
        return found is None or found.schema in self._readers

    def opened(self, message: Message) -> Message:
        """Return a message with what is in it, or with why that cannot be read.

        Raises
        ------
        RegistryError
            If the registry does not answer.
        """
        try:
            found = unframed(message.value, message.headers)
            return message if found is None else replace(message, decoded=self._fields(found))
        except BadRecordError as error:
            return replace(message, flaw=str(error))

    def open_in_place(self, message: KafkaMessage) -> None:
        """Make a message that was read by librdkafka plain JSON, if it can be read.

        Raises
        ------
        RegistryError
            If the registry does not answer.
        """
        headers = headers_of(message)
        try:
            if found := unframed(message.value(), headers):
                message.set_value(self._json(found))
        except BadRecordError:
            pass  # whoever reads it sees that it is none

    def _fields(self, found: Framed) -> Mapping[str, Any]:
        return self._read(found)(found.payload)

    def _json(self, found: Framed) -> bytes:
        read = self._read(found)
        if read is load_object:
            return found.payload
        try:
            return orjson.dumps(read(found.payload))
        except TypeError as error:  # it writes no deep nesting
            raise BadRecordError(f"cannot be written as JSON: {error}") from None

    def _read(self, found: Framed) -> avro.Read:
        read = self._reader(found.schema)
        if isinstance(read, str):
            raise BadRecordError(read)
        return read

    def _reader(self, schema: Reference) -> avro.Read | str:
        if schema not in self._readers:
            self._readers[schema] = self._asked(schema)
            if len(self._readers) > MOST_SCHEMAS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(schema)
        return self._readers[schema]

    def _asked(self, schema: Reference) -> avro.Read | str:
        """Return what reads values of a schema, or why none can."""
        kind, texts = self.registry.schema(schema)
        if kind == "JSON":
            return load_object
        if kind != "AVRO":
            return f"its schema is {kind}, but only JSON Schema and Avro are read"
        try:
            return avro.reader(texts)
        except BadRecordError as error:
            return str(error)
