"""The AsyncAPI document: as the code is, and as AsyncAPI wants it."""

import copy
import json
import lzma
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from deploy.docs.asyncapi import BINDING, PATH, document, text
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.create import topic_specs
from fluxplain.schemas import RECORDS
from fluxplain.schemas.__main__ import FOLDER, schema_path
from tests.kit.support import make_config

OFFICIAL = Path(__file__).with_name("vendor") / "asyncapi-3.0.0.json.xz"


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json.loads(lzma.decompress(OFFICIAL.read_bytes()))
    return jsonschema.Draft7Validator(schema)


def test_the_file_is_that_of_the_code() -> None:
    assert PATH.read_bytes() == text(), "run `make reference`"


def test_it_is_valid(validator: Any) -> None:
    errors = [
        f"{'.'.join(map(str, e.path))}: {e.message[:300]}"
        for e in validator.iter_errors(document())
    ]
    assert not errors


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("info.title", None),
        ("operations.drift-sends-changes.action", "publish"),
        ("channels.changes.bindings.kafka.partitions", "many"),
    ],
)
def test_what_is_wrong_would_be_seen(validator: Any, place: str, value: Any) -> None:
    broken = copy.deepcopy(document())
    *parts, last = place.split(".")
    reduce(lambda part, name: part[name], parts, broken)[last] = value
    assert not validator.is_valid(broken)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (each for name, each in value.items() if name == "$ref")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from references(each)


def test_what_is_referred_to_is_there() -> None:
    whole = document()
    files = set()
    for reference in references(whole):
        if reference.startswith("#/"):
            assert reduce(lambda part, name: part[name], reference[2:].split("/"), whole)
        else:
            files.add(FOLDER / reference)
    assert files == {schema_path(kind) for kind in RECORDS}


def test_there_is_a_channel_for_each_topic_as_it_is_created() -> None:
    config = make_config(label={"topic": True, "type": "integer"}, control={"topic": True})
    channels = document()["channels"]
    for spec in topic_specs(config):
        channel = channels.pop(spec.name.removeprefix("fluxplain."))
        assert channel["address"].replace("{prefix}", "fluxplain.") == spec.name
        kafka = channel["bindings"]["kafka"]
        assert kafka["partitions"] == spec.partitions
        assert kafka["bindingVersion"] == BINDING
    assert not channels


def test_each_message_has_a_sender_and_a_receiver_but_those_at_the_ends() -> None:
    found: dict[str, set[str]] = {"send": set(), "receive": set()}
    for operation in document()["operations"].values():
        found[operation["action"]].add(operation["channel"]["$ref"].rpartition("/")[2])
    assert found["receive"] - found["send"] == {"features", "labels"}, "your producers send them"
    assert found["send"] - found["receive"] == {
        *("predictions", "reasons", "changes", "dead-letters"),
    }, "for you"
    roles = {name.partition("-")[0] for name in document()["operations"]}
    assert roles == set(get_args(Role))
