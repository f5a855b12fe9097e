"""One typed record per topic, and its JSON Schema beside it.

``python -m fluxplain.schemas`` writes the JSON Schemas anew.
"""

from fluxplain.schemas.change import Change
from fluxplain.schemas.control import Control
from fluxplain.schemas.dead_letter import DeadLetter
from fluxplain.schemas.evaluation import Evaluation
from fluxplain.schemas.explanation import Explanation
from fluxplain.schemas.late_label import LateLabel
from fluxplain.schemas.observation import Observation
from fluxplain.schemas.prediction import Prediction
from fluxplain.schemas.record import (
    FIRST_INCARNATION,
    BadRecordError,
    Incarnation,
    Record,
    is_newer,
    parse_stream,
    stream_name,
)

RECORDS: tuple[type[Record], ...] = (
    Observation,
    LateLabel,
    Control,
    Prediction,
    Evaluation,
    Explanation,
    Change,
    DeadLetter,
)

INPUTS: tuple[type[Record], ...] = (Observation, LateLabel, Control)
"""What is taken in; the pipeline publishes the others."""

OUTPUTS: dict[str, type[Record]] = {
    record.TOPIC: record for record in (Prediction, Explanation, Change, DeadLetter)
}
"""Topic that users read → what is published there, in the order of the data's flow."""

__all__ = [
    "FIRST_INCARNATION",
    "INPUTS",
    "OUTPUTS",
    "RECORDS",
    "BadRecordError",
    "Change",
    "Control",
    "DeadLetter",
    "Evaluation",
    "Explanation",
    "Incarnation",
    "LateLabel",
    "Observation",
    "Prediction",
    "Record",
    "is_newer",
    "parse_stream",
    "stream_name",
]
