"""What settings refer to is loaded and checked by those who use it."""

from collections.abc import Mapping
from typing import Any

import pytest
from river.base import BinaryDriftDetector

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Caller, Config, ConfigError, check_references
from fluxplain.explain.losses import brier
from tests.kit.loading import Load
from tests.kit.support import make_config


class Seeded:
    """A model that draws random numbers."""

    def __init__(self, seed: int | None = None, other: int = 0) -> None:
        self.seed = seed

    def predict_one(self, x: Mapping[str, Any]) -> int:
        return 0

    def learn_one(self, x: Mapping[str, Any], y: object) -> None:
        pass


class Mute(Seeded):
    """A model that cannot be asked."""

    predict_one = None  # type: ignore[assignment]


class Unteachable:
    """A model that cannot learn."""

    def predict_one(self, x: Mapping[str, Any]) -> int:
        return 0


class Glued(Seeded):
    """A model that cannot be pickled."""

    def __init__(self) -> None:
        self.glue = lambda: None


class OfErrors(BinaryDriftDetector):
    """A detector that takes errors."""

    def update(self, x: bool) -> None:
        pass


def breaks() -> object:
    raise RuntimeError("out of order")


def of_model(factory: str, **settings: Any) -> Config:
    reference = f"{__name__}:{factory}"
    return make_config(model={"factory": reference, "params": {}}, **settings)


def test_a_loss_of_ones_own_is_loaded(load: Load) -> None:
    assert load("explain.loss = 'fluxplain.explain.losses:brier'").loss() is brier


def test_a_detector_that_takes_errors_may_watch_the_loss(load: Load) -> None:
    config = load(f"explain.loss = 'zero_one'; drift.loss.detector = '{__name__}:OfErrors'")
    watched = config.drift.of("loss")
    assert watched is not None
    assert isinstance(watched.make(""), OfErrors)


@pytest.mark.parametrize(
    ("wrong", "key", "users"),
    [
        ({"explain": {"loss": "hinge"}}, r"explain\.loss", {None, "model", "explainer"}),
        ({"model": {"factory": "no.such:Model"}}, r"model\.factory", {None, "model"}),
        ({"drift": {"detector": "no.such:Class"}}, r"drift\.ipfi", {None, "model", "drift"}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_settings_refer_to_is_checked_by_those_who_use_it(
    wrong: dict[str, Any], key: str, users: set[str | None], stream: bool
) -> None:
    if "drift" in wrong and not stream:
        wrong = {"drift": {**wrong["drift"], "delta": None, "params": {}}}
    config = make_config(streams={2: wrong}) if stream else make_config(**wrong)
    callers: list[Caller | None] = [None, *ROLES, "reader"]
    for role in callers:
        if role in users:
            with pytest.raises(ConfigError, match=("^streams\\.2\\." if stream else "^") + key):
                check_references(config, role)
        else:
            check_references(config, role)
