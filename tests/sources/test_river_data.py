"""River's data sets as sources."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river.datasets import base, synth

from fluxplain.config import load_config
from fluxplain.schemas import Observation
from fluxplain.sources import SourceError, open_source
from fluxplain.stages.intake.validation import ObservationValidator
from tests.kit.sources import config, read, refusal

ROOT = Path(__file__).parents[2]


def test_reads_a_synthetic_data_set_with_its_parameters() -> None:
    settings = load_config(ROOT / "deploy" / "examples" / "agrawal.toml")
    check = ObservationValidator(settings.features, settings.label.type)
    first, second = (
        [*open_source(f"river:Agrawal?classification_function={i}&seed=1", settings, limit=50)]
        for i in (1, 2)
    )
    assert len(first) == 50
    assert first != second
    for value in first:
        observation = Observation.decode(value)
        assert list(check.x(observation)) == list(settings.features)
        assert check.y(observation) in {0, 1}


def test_a_synthetic_data_set_is_seeded_by_the_configuration() -> None:
    settings = config(age="numeric")
    seeds = ["", "?seed=7", "?seed=8"]
    configured, same, other = (
        [*open_source(f"river:Agrawal{seed}", settings, limit=20)] for seed in seeds
    )
    assert configured == same
    assert configured != other
    # this one calls them seed_model and seed_sample
    source = open_source("river:RandomRBF", config(**{"0": "numeric"}), limit=20)
    assert list(source) == list(source)


def test_the_total_is_known_unless_there_is_no_end() -> None:
    settings = config(age="numeric")
    assert open_source("river:Agrawal", settings).total is None
    assert open_source("river:Agrawal", settings, limit=5).total == 5
    bundled = open_source("river:Phishing", config(https="numeric"))
    assert bundled.total == len(list(bundled)) == 1250
    assert open_source("river:Phishing", config(https="numeric"), limit=5000).total == 1250


@pytest.mark.parametrize(
    ("source", "kind", "features", "expected"),
    [
        ("Mixed", "boolean", {"0": "categorical", "3": "numeric"}, (bool, bool)),
        ("Phishing", "integer", {"https": "categorical"}, (int, int)),
        ("Phishing", "string", {"https": "numeric"}, (str, float)),
        ("Phishing", "boolean", {"age_of_domain": "numeric"}, (bool, int)),
        ("Shuttle", "number", {"f1": "numeric"}, (float, int)),
        ("Mv", "number", {"3": "categorical"}, (float, str)),
        ("ImageSegments", "integer", {"hue-mean": "numeric"}, (str, float)),
        ("AirlinePassengers", "number", {"month": "categorical"}, (float, str)),
    ],
)
def test_values_and_labels_keep_what_they_say(
    source: str, kind: str, features: dict[str, str], expected: tuple[type, type]
) -> None:
    [record] = read(f"river:{source}", config(kind, **features), limit=1)
    assert list(record["x"]) == list(features)
    assert (type(record["y"]), type(next(iter(record["x"].values())))) == expected


class NumPyDataset(base.SyntheticDataset):
    def __init__(self) -> None:
        super().__init__(task=base.REG, n_features=3)

    def __iter__(self) -> Iterator[tuple[dict[Any, Any], Any]]:
        yield {0: np.int64(3), "b": np.float64(2.0), "c": np.bool_(True)}, np.int64(1)


def test_numpy_scalars_become_plain_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synth, "NumPyDataset", NumPyDataset, raising=False)
    features = {"0": "numeric", "b": "categorical", "c": "categorical"}
    [value] = open_source("river:NumPyDataset", config("boolean", **features))
    assert value == b'{"x":{"0":3,"b":2,"c":true},"y":true}'


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("river:Agrawl", "no data set 'Agrawl'; it has: Agrawal, .*Phishing"),
        ("river:", "no data set ''"),
        ("river:base", "no data set 'base'"),
        ("river:Elec2", "would be downloaded"),
        ("river:Agrawal?colour=1", "no parameter 'colour'; it has: classification_function, seed"),
        ("river:Phishing?seed=1", "no parameter 'seed'; it has: none"),
        ("river:Agrawal?classification_function=99", "failed: ValueError"),
        ("river:Agrawal?seed", r"write parameters as \?name=value"),
        ("river:Agrawal?seed=1&seed=2", "gives a parameter twice"),
        ("river:SEA", "no feature 'age'; it has: 0, 1, 2"),
        ("river:Logical", r"several labels \(OR, XOR, AND\)"),
    ],
)
def test_errors_of_a_river_data_set_are_one_line(source: str, message: str) -> None:
    feature = "A" if source == "river:Logical" else "age"
    assert re.search(message, refusal(source, settings=config(**{feature: "numeric"})))


def test_the_list_of_data_sets_has_none_to_download() -> None:
    listed = refusal("river:?")
    assert "Agrawal" in listed
    assert "Elec2" not in listed
    assert "Dataset" not in listed


def test_a_generator_that_fails_later_is_an_error() -> None:
    # the transition of one record overflows far behind its position
    source = "river:ConceptDriftStream?position=2000&width=1"
    with pytest.raises(SourceError, match="failed: OverflowError"):
        list(open_source(source, config(age="numeric"), limit=5000))
