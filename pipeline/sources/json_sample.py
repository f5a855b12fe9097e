"""A sample of JSON messages, by column, without settings."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from fluxplain.schemas import BadRecordError
from fluxplain.schemas.record import describe, load_object
from fluxplain.sources.first_rows import Column
from fluxplain.sources.source import SourceError


class JsonSample(NamedTuple):
    """What some messages hold.

    ``columns`` are those of ``x`` where messages are observations, otherwise of the whole objects.
    ``label`` has the labels ``y`` of observations. ``objects`` are the messages, without the
    ``refused`` ones that are no JSON objects, of which the reasons are given.
    """

    are_observations: bool
    columns: list[Column]
    label: Column
    objects: list[dict[str, Any]]
    refused: list[str]


def json_sample(topic: str, values: Iterable[bytes | None]) -> JsonSample:
    """Return what messages of a topic hold; raise SourceError if no one is a JSON object.

    Examples
    --------
    >>> sample = json_sample("features", [b'{"x": {"age": 61}, "y": true}', b"[1]"])
    >>> sample.are_observations, sample.columns[0].values, sample.label.values, sample.refused
    (True, [61], [True], ['not a JSON object, but an array [1]'])
    """
    objects, refused = _read(values)
    if not objects:
        if not refused:
            raise SourceError(f"the topic {topic!r} is empty: send some observations first")
        raise SourceError(
            f"the topic {topic!r} has no JSON object in its newest messages, such as "
            f'{{"x": {{"amount": 12.5}}, "y": true}}; the first one: {refused[0]}'
        )
    observed = [each["x"] for each in objects if isinstance(each.get("x"), dict)]
    # a label that comes later is in a message of its own
    label = _column("y", [each["y"] for each in objects if each.get("y") is not None], 0)
    return JsonSample(bool(observed), _columns(observed or objects), label, objects, refused)


def _read(values: Iterable[bytes | None]) -> tuple[list[dict[str, Any]], list[str]]:
    objects, refused = [], []
    for value in values:
        try:
            objects.append(load_object(value))
        except BadRecordError as error:
            refused.append(str(error))
    return objects, refused


def _columns(rows: list[dict[str, Any]]) -> list[Column]:
    given: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values = given.setdefault(name, [])
            if value is not None:
                values.append(value)
    return [_column(name, values, len(rows) - len(values)) for name, values in given.items()]


def _column(name: str, values: list[Any], missing: int) -> Column:
    return Column(name, values, [*map(_text, values)], missing, is_typed=True)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    # deep nesting can be read, but not written
    return describe(value) if isinstance(value, list | dict) else orjson.dumps(value).decode()


def as_observation(
    fields: Mapping[str, Any], features: Iterable[str], label: str | None, others: Mapping[str, str]
) -> str:
    """Return the observation that a flat object should be sent as, as JSON.

    ``others`` are the field of the observation, ``id`` or ``ts`` → the object's.

    Examples
    --------
    >>> as_observation({"age": 61, "ok": True, "key": 7}, ["age"], "ok", {"id": "key"})
    '{"x":{"age":61},"y":true,"id":7}'
    """
    shape: dict[str, Any] = {"x": {name: fields.get(name) for name in features}}
    if label is not None:
        shape["y"] = fields.get(label)
    return orjson.dumps(shape | {use: fields.get(name) for use, name in others.items()}).decode()
