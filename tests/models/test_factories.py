"""Parts of models from tables, and what a factory gets."""

import sys
from typing import Any

import pytest

from fluxplain.config import ConfigError, check_references
from fluxplain.models import from_river
from fluxplain.models.factories import make
from tests.kit.support import make_config


class Curious:
    """Takes what the pipeline knows."""

    def __init__(
        self, seed: int, features: dict[str, str], label: str, learn: bool, note: str = ""
    ) -> None:
        self.given = (seed, features, label, learn, note)

    def predict_proba_one(self, x: object) -> dict[int, float]:
        return {0: 1.0}

    def learn_one(self, x: object, y: object) -> None:
        pass


def test_a_factory_gets_what_the_pipeline_knows() -> None:
    factory = "tests.models.test_factories:Curious"
    config = make_config(seed=3, model={"factory": factory, "params": {"note": "mine"}})
    check_references(config)
    given = (3, {f: str(kind) for f, kind in config.features.items()}, "integer", True, "mine")
    assert config.make_model().given == given
    params = {"features": {"a": "numeric"}, "label": "string", "seed": 1}
    chosen = make_config(seed=3, model={"factory": factory, "params": params}).make_model()
    assert chosen.given == (1, {"a": "numeric"}, "string", True, "")


def test_tables_within_tables_are_made_and_seeded() -> None:
    forest = "river.forest:ARFClassifier"
    voting = make(
        {
            "factory": "river.ensemble:VotingClassifier",
            "models": [{"factory": forest, "seed": 5}, {"factory": forest}],
        },
        seed=9,
    )
    assert [model.seed for model in voting.models] == [5, 9]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "at least one"),
        ("river.forest:ARFClassifier", "must be a list"),
        (["river.forest:Forest"], "river.forest has no Forest"),
        (["sklearn.linear_model:SGDClassifier"], "SGDClassifier.*not a River estimator"),
        ([{"factory": "river.forest:ARFClassifier", "trees": 3}], "'trees': 3.*TypeError"),
        (["not a reference"], "'not a reference', but must be 'module:name'"),
    ],
)
def test_steps_that_cannot_be_made_are_told(steps: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_river(steps)


@pytest.mark.parametrize(
    ("factory", "library", "remedy"),
    [
        ("from_sklearn", "sklearn", r"scikit-learn is not installed: pip install 'fluxplain\[sk"),
        ("from_torch", "torch", r"torch is not installed: pip install 'fluxplain\[torch\]'"),
    ],
)
def test_a_library_that_is_missing_is_told(
    factory: str, library: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # an import fails
    monkeypatch.setattr("fluxplain.models.torch_models.torch", None)
    params = {"estimator": "sklearn.linear_model:SGDClassifier"} if library == "sklearn" else {}
    config = make_config(model={"factory": f"fluxplain.models:{factory}", "params": params})
    with pytest.raises(ConfigError, match=remedy):
        check_references(config)


class Forgetful(Curious):
    """Draws random numbers without a seed."""

    def __init__(self) -> None:
        import random  # noqa: PLC0415

        self.rng = random.Random()


def test_a_model_whose_random_numbers_have_no_seed_is_refused() -> None:
    factory = "tests.models.test_factories:Forgetful"
    with pytest.raises(ConfigError, match=r"Forgetful.*draws other random numbers each time.*seed"):
        check_references(make_config(model={"factory": factory, "params": {}}))
