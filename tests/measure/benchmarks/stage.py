"""What explaining costs in the model stage, beside the library's explainers on the same records."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from river import forest

from fluxplain.config import Config
from fluxplain.forest import as_arrays
from fluxplain.stages import Message, ModelStage, Stage, process
from tests.measure.benchmarks.case import Record, together
from tests.measure.benchmarks.library_streams import agrawal, mixed_agrawal
from tests.measure.benchmarks.timing import Figure, Run, Stopwatch, quartiles

TRAINED, MEASURED = 5_000, 1_000

CATEGORIES = ("car", "zipcode", "elevel")
"""Agrawal's categorical features."""

FEW = 10_000
"""One of so many observations is explained where the stage is measured without explanations."""


def explaining_in_the_stage(run: Run) -> Iterator[Figure]:
    """Measure all three methods of a forest of 10 trees, with numbers only and with categories.

    The cost in the stage is what a stage takes that explains all observations, less what one takes
    that explains next to none. Both, and the library's explainers, take turns record by record.
    """
    for name, records in (("numbers only", agrawal), ("with 3 categories", mixed_agrawal)):
        run.clock.say(f"the stage and the library, {name}")
        yield _figure(f"full set in the model stage, ARF-10, agrawal, {name}", records)


def settings(x: Mapping[str, Any], **explain: Any) -> dict[str, Any]:
    """Return the settings of a pipeline whose model is the library's."""
    kinds = {f: "categorical" if isinstance(v, str) else "numeric" for f, v in x.items()}
    return {
        "features": kinds,
        "label": {"type": "integer"},
        "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 10, "seed": 1}},
        "explain": {"isage": {"inner_samples": 1}, **explain},
    }


def _figure(name: str, records: Callable[[], Iterator[Record]]) -> Figure:
    x, _ = next(records())
    explaining = _stage(settings(x))
    plain = _stage(settings(x, every=FEW))
    model = as_arrays(forest.ARFClassifier(n_models=10, seed=1))
    explain = together(model, list(x))
    watch = Stopwatch()
    for i, (x, y) in enumerate(itertools.islice(records(), TRAINED + MEASURED)):
        message = Message("features", 0, i, None, orjson.dumps({"x": x, "y": y}))
        timer = watch if i >= TRAINED else Stopwatch()
        timer.time("stage", _step, explaining, message)
        timer.time("plain", _step, plain, message)
        timer.time("library", explain, x, y)
        model.predict_proba_one(x)
        model.learn_one(x, y)
    blocks = zip(*(watch.blocks(side) for side in ("stage", "plain", "library")), strict=True)
    middle, spread = quartiles([(stage - bare) / alone for stage, bare, alone in blocks])
    cost = watch.microseconds("stage") - watch.microseconds("plain")
    library = f"{watch.microseconds('library'):,.0f} µs in the library"
    return Figure(name, f"{cost:,.0f} µs", library, middle, spread, "at most 1.1")


def _stage(fields: dict[str, Any]) -> ModelStage:
    return ModelStage(Config(**fields), "features-0")


def _step(stage: Stage, message: Message) -> None:
    process(stage, message)
