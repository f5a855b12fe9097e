"""Settings that are proposed for the messages of a topic."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from fluxplain.config import load_config
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Explanation
from fluxplain.sources import SourceError
from fluxplain.sources.json_sample import json_sample
from fluxplain.sources.proposal import label_type, proposal_of_observations
from tests.cli.commands import NO_BROKER, NOWHERE, SERVERS, one_line
from tests.kit.in_process import Ended, run

N = 250


def payments() -> list[dict[str, Any]]:
    rng = random.Random(1)
    made = []
    for i in range(N):
        amount, shop = round(rng.uniform(0.0, 99.0), 2), rng.choice(["north", "south"])
        x = {"amount": amount, "shop": shop, "visits": float(rng.randrange(5)), "at": f"k{i}"}
        x |= {"shop_id": rng.randrange(3), "zone": None if i % 7 == 6 else rng.choice([1, 2])}
        made.append({"x": x, "y": int(amount > 50.0), "id": i, "ts": 1_700_000_000 + i})
    return made


def flat(each: dict[str, Any]) -> dict[str, Any]:
    return {**each["x"], "is_fraud": each["y"], "key": f"p{each['id']}", "ts": each["ts"]}


def encoded(values: list[Any]) -> list[bytes]:
    return [*map(orjson.dumps, values)]


TOPICS = {
    "shop.features": encoded(payments()),
    "elsewhere": encoded(payments()),
    "flat": encoded([*map(flat, payments())]),
    "late.features": encoded([{k: v for k, v in each.items() if k != "y"} for each in payments()]),
    "nested.features": [
        *encoded([{**each, "x": {**each["x"], "tags": [1]}} for each in payments()])
    ],
    "mixed.features": [b"hello", *encoded(payments()), b'{"x": {"amount": NaN}}'],
    "texts": [b"hello", b"[1]"],
    "nan": [b'{"x": {"amount": NaN}}'],
    "none": [],
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """The address of a broker that has the topics."""
    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for topic, values in TOPICS.items():
            producer.list_topics(topic, timeout=10)  # the embedded broker creates it
            for value in values:
                producer.produce(topic, value)
        producer.flush()
        yield broker.bootstrap_servers


def init(folder: Path, servers: str, topic: str, *options: str) -> Ended:
    return run(folder, "init", "--from-topic", topic, "--bootstrap-servers", servers, *options)


def test_observations_of_a_topic_run_with_what_is_proposed(tmp_path: Path, servers: str) -> None:
    found = init(tmp_path, servers, "shop.features")
    assert found.returncode == 0, found.stderr
    for line in (
        "Read 250 messages of shop.features: observations",
        "3 numeric and 2 categorical features",
        "without at: 250 different texts",
        "label: y (boolean)",
        "Some values are missing",
    ):
        assert line in found.stdout
    assert "dead-letters" not in found.stdout
    config = load_config(tmp_path / "fluxplain.toml")
    assert config.kafka.bootstrap_servers == servers
    assert config.topic(config.source) == "shop.features"
    records = [*LocalPipeline(config).run(TOPICS["shop.features"])]
    assert not [each for each in records if isinstance(each, DeadLetter)]
    explained = {each.feature for each in records if isinstance(each, Explanation)}
    # what is a float in JSON cannot be a category
    assert explained == {"amount", "shop", "visits", "shop_id", "zone"}


def test_the_environment_may_name_the_brokers(tmp_path: Path, servers: str) -> None:
    found = run(tmp_path, "init", "--from-topic", "shop.features", **{SERVERS: servers})
    assert found.returncode == 0, found.stderr
    assert load_config(tmp_path / "fluxplain.toml").kafka.bootstrap_servers == servers


def test_flat_objects_are_shown_as_the_pipeline_wants_them(tmp_path: Path, servers: str) -> None:
    found = init(tmp_path, servers, "flat")
    assert found.returncode == 0, found.stderr
    assert "label: is_fraud (boolean)\nid: key\ntime: ts\n" in found.stdout
    assert "reads the topic fluxplain.features" in found.stdout
    [example] = [line for line in found.stdout.splitlines() if line.startswith("  {")]
    config = load_config(tmp_path / "fluxplain.toml")
    observation = orjson.loads(example)
    assert set(observation) == {"x", "y", "id", "ts"}
    assert set(observation["x"]) == {*config.features}
    [prediction] = LocalPipeline(config).step(0, example.encode())
    assert not isinstance(prediction, DeadLetter)


def test_what_the_pipeline_would_not_use_is_told(tmp_path: Path, servers: str) -> None:
    elsewhere = init(tmp_path, servers, "elsewhere", "-o", "a.toml").stdout
    assert "send the observations there instead of to elsewhere" in elsewhere
    nested = init(tmp_path, servers, "nested.features", "-o", "b.toml").stdout
    assert "without tags: lists or objects" in nested
    assert "250 of these messages would go to dead-letters; the first one: x.tags must" in nested
    mixed = init(tmp_path, servers, "mixed.features", "-o", "c.toml").stdout
    assert "2 more are no JSON objects, and would go to dead-letters" in mixed


def test_observations_without_a_label_need_a_word_from_the_user(
    tmp_path: Path, servers: str
) -> None:
    refused = init(tmp_path, servers, "late.features")
    assert refused.returncode == 2
    assert "no message of 'late.features' has a label, y" in refused.stderr
    found = init(tmp_path, servers, "late.features", "--no-label")
    assert found.returncode == 0, found.stderr
    assert load_config(tmp_path / "fluxplain.toml").label.type == "none"


@pytest.mark.parametrize(
    ("topic", "options", "reason"),
    [
        ("features", (), "has no topic 'features'; did you mean 'shop.features'?"),
        ("none", (), "the topic 'none' is empty: send some observations first"),
        ("texts", (), "the topic 'texts' has no JSON object"),
        ("nan", (), "JSON has no NaN or Infinity: send null for a missing value"),
        ("flat", ("--label", "fraud"), "key, ts; did you mean 'is_fraud'?"),
        ("shop.features", ("--label", "y"), "leave --label out"),
        ("flat", ("data.csv",), "data.csv and --from-topic contradict each other"),
    ],
)
def test_what_cannot_be_proposed_for_a_topic_is_told_in_one_line(
    tmp_path: Path, servers: str, topic: str, options: tuple[str, ...], reason: str
) -> None:
    refused = init(tmp_path, servers, topic, *options)
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_a_broker_that_does_not_answer_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "init", "--from-topic", "features", **NOWHERE)
    assert refused.returncode == 2
    assert NO_BROKER in one_line(refused.stderr)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([True, False], "boolean"),
        ([1, 0, True], "boolean"),
        ([1, 2, 3], "integer"),
        ([1, 2.5], "number"),
        (["1", "0"], "string"),
        (["yes", "no"], "string"),
    ],
)
def test_labels_in_json_keep_their_types(labels: list[Any], kind: str) -> None:
    values = encoded([{"x": {"a": i}, "y": y} for i, y in enumerate(labels)])
    sample = json_sample("t", values)
    assert label_type(sample.label) == kind


def test_labels_of_several_types_are_refused() -> None:
    sample = json_sample("t", encoded([{"x": {"a": 1}, "y": y} for y in (1, "red", True)]))
    with pytest.raises(SourceError, match="'y' has values of several types, such as 1, red, true"):
        label_type(sample.label)


def test_text_among_numbers_in_json_is_no_category() -> None:
    xs = [{"a": 1.5, "b": 1}, {"a": "n/a", "b": 2}, {"a": 2.5, "b": 3}]
    sample = json_sample("t", encoded([{"x": x, "y": True} for x in xs]))
    proposal = proposal_of_observations(sample.columns, None)
    assert proposal.left_out == {"a": "numbers, but also 'n/a'"}
