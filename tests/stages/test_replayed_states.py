"""A state that is loaded and replays messages equals the one that never stopped."""

import pickle
import pickletools
from collections.abc import Sequence
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.kafka.checkpoints.equal_states import first_difference
from fluxplain.schemas import Evaluation, Explanation
from fluxplain.stages import DriftStage, ExplainerStage, Message, ModelStage, Stage, process
from tests.kit import support as kit
from tests.kit.settings import EAGER_DRIFT, SETTINGS, all_methods
from tests.kit.streams import observations

FOREST = {
    **SETTINGS,
    "explain": {"loss": "brier", "alpha": 0.01, "emit_every": 3, **all_methods(50, 2, 4)},
    "drift": EAGER_DRIFT,
}

KINDS: dict[str, dict[str, Any]] = {
    "forest": FOREST,
    "tree": {**FOREST, "model": {"factory": "river.tree:HoeffdingTreeClassifier"}},
    "adaptive tree": {
        **FOREST,
        "model": {"factory": "river.tree:HoeffdingAdaptiveTreeClassifier", "params": {"seed": 1}},
    },
    "naive Bayes": {**FOREST, "model": {"factory": "river.naive_bayes:GaussianNB"}},
}


def run(stage: Stage, messages: Sequence[Message]) -> list[Any]:
    return [record for message in messages for record in process(stage, message)]


def assert_replayed_equals_continued(stage: Stage, messages: Sequence[Message]) -> None:
    """Stop in the middle, replay the rest from there, and compare; no state needs Numba."""
    half = len(messages) // 2
    run(stage, messages[:half])
    older = pickle.dumps(stage)
    run(stage, messages[half:])
    state = pickle.dumps(stage)
    replayed = pickle.loads(older)
    run(replayed, messages[half:])
    assert first_difference(replayed, pickle.loads(state)) is None
    texts = [argument for _, argument, _ in pickletools.genops(state) if isinstance(argument, str)]
    assert not {"numba", "llvmlite"} & {text.partition(".")[0] for text in texts}


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_stage(kind: str) -> None:
    config = Config(**KINDS[kind])
    values = observations(300)
    messages = [Message("fluxplain.features", 0, i, None, each) for i, each in enumerate(values)]
    assert_replayed_equals_continued(ModelStage(config, kit.STREAM), messages)
    records = kit.run(ModelStage(config, kit.STREAM), messages)
    evaluations = kit.of_kind(records, Evaluation)
    assert_replayed_equals_continued(ExplainerStage(config), kit.passed_on(evaluations))
    explained = kit.run(ExplainerStage(config), kit.passed_on(evaluations))
    explanations = kit.of_kind(explained, Explanation)
    assert_replayed_equals_continued(DriftStage(config), kit.passed_on(explanations))


def test_of_a_regression_with_late_labels_and_missing_values() -> None:
    config = kit.linear_config(label={"type": "number", "wait": 20})
    rows = kit.linear_records(200)
    values: list[dict[str, Any]] = []
    for i, row in enumerate(rows):
        values.append({**row, "y": None, "id": f"{i}"} if i % 3 else row)
        if i % 5 == 0 and i > 3:
            values.append({"id": f"{i - 2}", "y": 1.0})
    assert_replayed_equals_continued(ModelStage(config, kit.STREAM), kit.messages_of(values))
