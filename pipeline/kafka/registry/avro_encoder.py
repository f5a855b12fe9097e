"""Encodes the records of output topics in the wire format."""

import logging
from collections.abc import Mapping

import orjson

from fluxplain.config import Config
from fluxplain.kafka.registry import avro_values as avro
from fluxplain.kafka.registry.registry_client import Registry
from fluxplain.kafka.registry.wire import framed
from fluxplain.schemas import OUTPUTS, Change, Record
from fluxplain.schemas.avro import avro_schema

log = logging.getLogger("fluxplain.registry")


class Encoder:
    """Registers the schemas of the output topics, and encodes their records.

    Raises AccessError if the registry refuses a schema, such as an incompatible one, and
    RegistryError if it does not answer.
    """

    def __init__(self, config: Config) -> None:
        registry = Registry(config.registry)
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
        self._writers = {
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
