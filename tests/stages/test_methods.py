"""What holds for every method in the list: it is explained, shared and kept like the others."""

import inspect
import pickle
from itertools import islice
from pkgutil import resolve_name

import orjson
import pytest
from river.datasets import synth

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Explanation, Record
from fluxplain.schemas.methods import METHODS, Method
from tests.kit.support import encoded, make_config, of_kind

LONG_ENOUGH = 150
"""Records after which every method is warm with its own settings."""

every_method = pytest.mark.parametrize("method", METHODS)


def config_of(method: Method) -> Config:
    return make_config(explain={"methods": [method], "alpha": 0.05})


def published(pipeline: LocalPipeline, begin: int, end: int, *, every_label: bool) -> list[Record]:
    """Return what a pipeline publishes of a part of a stream, with every or every second label."""
    records: list[Record] = []
    for seq, (x, y) in enumerate(islice(synth.Agrawal(seed=3), end)):
        if seq >= begin:
            value = {"x": x, "y": y} if every_label or seq % 2 else {"x": x}
            records += pipeline.step(seq, orjson.dumps(value))
    return records


@every_method
def test_its_class_is_what_the_list_says_of_it(method: Method) -> None:
    info = METHODS[method]
    code, settings = resolve_name(info.code), resolve_name(info.settings)
    assert code.needs_label == info.needs_label
    assert hasattr(code, "increments") != info.is_curve
    configured = inspect.signature(code.configured).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in configured.values())
    assert takes_any or settings.model_fields.keys() <= configured.keys()


@every_method
def test_every_feature_is_explained(method: Method) -> None:
    config = config_of(method)
    explained = of_kind(
        published(LocalPipeline(config), 0, LONG_ENOUGH, every_label=True), Explanation
    )
    assert {each.method for each in explained} == {method}
    assert {each.feature for each in explained} == set(config.features)
    assert any(each.value for each in explained)
    assert all(each.grid is not None for each in explained) == METHODS[method].is_curve


@every_method
def test_only_a_method_that_needs_labels_waits_for_them(method: Method) -> None:
    explained = of_kind(
        published(LocalPipeline(config_of(method)), 0, LONG_ENOUGH, every_label=False), Explanation
    )
    without_label = {seq for each in explained for seq in each.seqs if seq % 2 == 0}
    assert bool(without_label) != METHODS[method].needs_label


@every_method
def test_a_pickled_pipeline_publishes_the_same(method: Method) -> None:
    pipeline = LocalPipeline(config_of(method))
    published(pipeline, 0, LONG_ENOUGH, every_label=True)
    copy = pickle.loads(pickle.dumps(pipeline))
    rest, again = (
        published(each, LONG_ENOUGH, LONG_ENOUGH + 30, every_label=True)
        for each in (pipeline, copy)
    )
    assert encoded(rest) == encoded(again)
    assert rest
