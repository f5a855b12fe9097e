"""What holds for every method in the list: it is explained, shared and kept like the others."""

import inspect
from pkgutil import resolve_name
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import DeadLetter, Evaluation
from fluxplain.schemas.methods import METHODS, Method
from tests.kit.stages import explained, explanations, local, merged, modelled
from tests.kit.support import agrawal, encoded, make_config, of_kind, pickled

LONG_ENOUGH = 150
"""Records after which every method is warm with its own settings."""

every_method = pytest.mark.parametrize("method", METHODS)


def config_of(method: Method) -> Config:
    return make_config(explain={"methods": [method], "alpha": 0.05})


def values(n: int, labelled: int = 1) -> list[dict[str, Any]]:
    """Return observations; one of so many has a label, beginning with the last of these."""
    return [
        {"x": x, "y": y} if (seq + 1) % labelled == 0 else {"x": x}
        for seq, (x, y) in enumerate(agrawal(n, seed=3))
    ]


def published(pipeline: LocalPipeline, begin: int, end: int) -> list[bytes]:
    """Return what a pipeline publishes of a part of a stream."""
    part = enumerate(values(end)[begin:], begin)
    return encoded(r for seq, value in part for r in pipeline.step(seq, orjson.dumps(value)))


@every_method
def test_its_class_agrees_with_the_list(method: Method) -> None:
    info = METHODS[method]
    code, settings = resolve_name(info.code), resolve_name(info.settings)
    assert hasattr(code, "increments") != info.is_curve
    configured = inspect.signature(code.configured).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in configured.values())
    assert takes_any or settings.model_fields.keys() <= configured.keys()


@every_method
def test_every_feature_is_explained(method: Method) -> None:
    config = config_of(method)
    explained = explanations(config, values(LONG_ENOUGH))
    assert {each.method for each in explained} == {method}
    assert {each.feature for each in explained} == set(config.features)
    assert any(each.value for each in explained)
    assert all(each.grid is not None for each in explained) == METHODS[method].is_curve


@every_method
def test_only_a_method_that_needs_labels_waits_for_them(method: Method) -> None:
    explained = explanations(config_of(method), values(LONG_ENOUGH, labelled=2))
    without_label = {seq for each in explained for seq in each.seqs if seq % 2 == 0}
    assert bool(without_label) != METHODS[method].needs_label


@pytest.mark.sampled(2)
@every_method
def test_a_pickled_pipeline_publishes_the_same(method: Method) -> None:
    pipeline = LocalPipeline(config_of(method))
    published(pipeline, 0, LONG_ENOUGH)
    copy = pickled(pipeline)
    rest, again = (published(each, LONG_ENOUGH, LONG_ENOUGH + 30) for each in (pipeline, copy))
    assert rest == again != []


@every_method
def test_a_run_of_observations_is_explained_like_each_of_them(method: Method) -> None:
    config = config_of(method)
    evaluations = of_kind(modelled(config, values(LONG_ENOUGH)), Evaluation)
    for feature in config.features:
        own = [each for each in evaluations if each.feature == feature and each.outputs]
        singles = encoded(explained(config, own))
        together = encoded(explained(config, [merged(own)]))
        assert together == singles != []


@every_method
def test_a_classifier_that_has_learned_no_class_yet_sends_nothing_to_dead_letters(
    method: Method,
) -> None:
    config = make_config(
        model={"factory": "river.naive_bayes:GaussianNB", "params": {}},
        explain={"methods": [method], "alpha": 0.05},
    )
    records = local(config, values(LONG_ENOUGH, labelled=LONG_ENOUGH + 1))
    assert not of_kind(records, DeadLetter)
