"""The schema that the page about schema registries shows is one of observations."""

import json
from datetime import UTC, datetime

from fluxplain.kafka.registry.avro_values import reader
from fluxplain.schemas import Observation
from fluxplain.schemas.record import Value
from tests.docs.documents import snippets
from tests.kit.registry import avro_of


def test_a_value_of_the_schema_that_is_shown_is_an_observation() -> None:
    [text] = [each.text for each in snippets("avsc")]
    x: dict[str, Value | None] = {"amount": 12.5, "country": None}
    ts = datetime(2026, 3, 1, 12, tzinfo=UTC)
    value = avro_of(json.loads(text), {"id": "tx-1", "ts": ts, "x": x, "y": False})
    read = Observation.of(reader([text])(value))
    assert read == Observation(x=x, y=False, id="tx-1", ts="2026-03-01T12:00:00Z")
