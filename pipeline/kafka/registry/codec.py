"""Values in the wire format: decoded into plain JSON, and encoded for the output topics.

In the wire format a zero byte and the schema's id (4 bytes) precede the value; or a header holds
them, or a one and a UUID.
"""

import logging
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from confluent_kafka import Message as KafkaMessage

from fluxplain.config import Config, ConfigError, RegistrySettings
from fluxplain.kafka.headers import headers_of
from fluxplain.schemas import OUTPUTS, BadRecordError, Change, Record
from fluxplain.schemas.avro import avro_schema
from fluxplain.schemas.record import load_object
from fluxplain.stages.stage import Message

log = logging.getLogger("fluxplain.registry")

MOST_SCHEMAS = 1_000
"""Largest number of cached schemas; the least recently used one is evicted."""

HEADER = "__value_schema_id"

PREFIX = struct.Struct(">cI")

Read = Callable[[bytes], dict[str, Any]]

Reference = int | UUID
"""A schema's id, or its UUID."""


class Framed(NamedTuple):
    """A value in the wire format: the schema's id or UUID, and the encoded bytes."""

    schema: Reference
    payload: bytes


def unframed(value: bytes | None, headers: Mapping[str, bytes]) -> Framed | None:
    """Split a value in the wire format; return None for any other value.

    Raises BadRecordError if the reference to the schema is truncated or unknown.

    Examples
    --------
    >>> unframed(b"\\x00\\x00\\x00\\x00\\x07{}", {})
    Framed(schema=7, payload=b'{}')
    >>> unframed(b'{"x": {}}', {})
    """
    if value is None:
        return None
    header = headers.get(HEADER)
    if header is not None:
        return Framed(_reference(header), value)
    if not value.startswith(b"\0"):  # JSON never does
        return None
    if len(value) < PREFIX.size:
        raise BadRecordError("the message ends within the id of its schema")
    return Framed(PREFIX.unpack_from(value)[1], value[PREFIX.size :])


def framed(schema: int, payload: bytes) -> bytes:
    """Return a value in the wire format."""
    return PREFIX.pack(b"\0", schema) + payload


def _reference(header: bytes) -> Reference:
    if header.startswith(b"\0") and len(header) == PREFIX.size:
        return int.from_bytes(header[1:], "big")
    if header.startswith(b"\1") and len(header) == 17:
        return UUID(bytes=header[1:])
    raise BadRecordError(f"the header {HEADER} names no schema")


class Decoder:
    """Decodes messages; requests each schema from the registry once.

    Unknown schemas are not cached: they may be registered later.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        client, self._avro = _extra()
        self.registry = client.Registry(settings)
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
            read: Read = self._avro.reader(texts)
        except BadRecordError as error:
            return str(error)
        return read


class Encoder:
    """Registers the schemas of the output topics, and encodes their records.

    Raises AccessError if the registry refuses a schema, such as an incompatible one, and
    RegistryError if it does not answer.
    """

    def __init__(self, config: Config) -> None:
        client, avro = _extra()
        registry = client.Registry(config.registry)
        self._url = registry.url
        is_avro = config.registry.output == "avro"
        self._ids = {
            topic: registry.register(
                f"{config.topic(topic)}-value",
                "AVRO" if is_avro else "JSON",
                orjson.dumps(avro_schema(kind) if is_avro else kind.json_schema()).decode(),
            )
            for topic, kind in OUTPUTS.items()
        }
        self._writers: dict[str, Callable[[Any], bytes]] = {
            topic: avro.writer(kind) if is_avro else kind.encode for topic, kind in OUTPUTS.items()
        }

    def value(self, record: Record) -> bytes:
        """Return a record's bytes; plain JSON if the record does not match its schema.

        fluxplain never writes such a record, and a foreign one must not stop the worker.
        """
        write = self._writers.get(record.TOPIC)
        if write is None:
            return record.encode()
        try:
            return framed(self._ids[record.TOPIC], write(record))
        except (ValueError, TypeError, OverflowError) as error:
            log.warning("a record of %s does not match its schema: %s", record.TOPIC, error)
            return record.encode()

    def headers(self, record: Record) -> Mapping[str, bytes]:
        """Return the headers that differ from those of plain JSON."""
        if not isinstance(record, Change):
            return {}
        schema = f"{self._url}/schemas/ids/{self._ids[record.TOPIC]}"
        return {"content-type": b"application/octet-stream", "ce_dataschema": schema.encode()}


def open_decoder(config: Config) -> Decoder | None:
    """Return a decoder, None without a registry; raise ConfigError if it cannot be made."""
    return None if config.registry.url is None else Decoder(config.registry)


def open_encoder(config: Config) -> Encoder | None:
    """Return an encoder, None for plain JSON; raise as :class:`Encoder` or `open_decoder`."""
    return None if config.registry.output == "none" else Encoder(config)


def check_registry(config: Config) -> None:
    """Check that a configured registry answers; raise as its client or `open_decoder`."""
    decoder = open_decoder(config)
    if decoder is not None:
        decoder.registry.check()


def _extra() -> tuple[Any, Any]:
    """Return the modules that need the extra; raise ConfigError if it is missing."""
    try:
        # imported here: few need them, and they are slow
        from fluxplain.kafka.registry import avro_values, registry_client  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"registry.url is set, but {error.name} is not installed: "
            "pip install 'fluxplain[registry]'"
        ) from None
    return registry_client, avro_values
