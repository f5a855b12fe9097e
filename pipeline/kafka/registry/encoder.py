"""What people read is published in the wire format, if wanted."""

import logging
from collections.abc import Callable, Mapping

import orjson

from pipeline.config import Config
from pipeline.kafka.registry import avro
from pipeline.kafka.registry.client import Registry
from pipeline.kafka.registry.wire import framed
from pipeline.outputs import OUTPUTS
from schemas import Change, Record
from schemas.avro import avro_schema

log = logging.getLogger("fluxplain.registry")


class Encoder:
    """Writes the records of the topics that people read; their schemas are registered first.

    Parameters
    ----------
    config
        With a registry, and another output than plain JSON.

    Raises
    ------
    AccessError
        If the registry refuses a schema, as one that is not compatible with those before it.
    RegistryError
        If the registry does not answer.
    """

    def __init__(self, config: Config) -> None:
        registry = Registry(config.registry)
        self._url = registry.url
        is_avro = config.registry.output == "avro"
        self._ids: dict[str, int] = {}
        self._writers: dict[str, Callable[[Record], bytes]] = {}
        for topic, kind in OUTPUTS.items():
            schema = avro_schema(kind) if is_avro else kind.json_schema()
            text = orjson.dumps(schema).decode()
            subject = f"{config.topic(topic)}-value"
            self._ids[topic] = registry.register(subject, "AVRO" if is_avro else "JSON", text)
            self._writers[topic] = avro.writer(kind) if is_avro else kind.encode

    def value(self, record: Record) -> bytes:
        """Return the value of a record's message.

        What has no place in the schema is plain JSON: somebody else has written what is no
        offset, say, and that is to harm nobody but its reader.
        """
        write = self._writers.get(record.TOPIC)
        if write is None:
            return record.encode()
        try:
            return framed(self._ids[record.TOPIC], write(record))
        except (ValueError, TypeError, OverflowError) as error:
            log.warning("a record of %s does not fit its schema: %s", record.TOPIC, error)
            return record.encode()

    def headers(self, record: Record) -> Mapping[str, bytes]:
        """Return what headers are other than of plain JSON."""
        if not isinstance(record, Change):
            return {}
        schema = f"{self._url}/schemas/ids/{self._ids[record.TOPIC]}"
        return {"content-type": b"application/octet-stream", "ce_dataschema": schema.encode()}
